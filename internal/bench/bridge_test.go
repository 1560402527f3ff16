// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xskfwd/xskfwd/internal/ethtool"
)

// bridgeChild in the environment turns the test program into a contestant.
const bridgeChild = "BENCH_BRIDGE_CHILD"

// bridge joins the two devices of its namespace until it is told to end.
func bridge() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGTERM)
	if err := makeBridge(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("bridge is up")
	<-end
}

func makeBridge() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "br0"
	master := &netlink.Bridge{LinkAttrs: attrs}
	errs := []error{netlink.LinkAdd(master)}
	for _, name := range []string{InDevice, OutDevice} {
		port, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		_, err = ethtool.SetFeatures(name, map[string]bool{ethtool.GRO: true}) // NAPI, for the source's frames
		errs = append(errs, err, netlink.LinkSetMaster(port, master))
	}
	return errors.Join(append(errs, netlink.LinkSetUp(master))...)
}
