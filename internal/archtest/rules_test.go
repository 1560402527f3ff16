// SPDX-License-Identifier: Apache-2.0

package archtest

import "strings"

const module = "github.com/xskfwd/xskfwd"

// The modules a package may be allowed in "theirs" below; packages under them are meant too.
const (
	asavie  = "github.com/asavie/xdp "
	goleak  = "go.uber.org/goleak "
	cobra   = "github.com/spf13/cobra "
	ebpf    = "github.com/cilium/ebpf "
	netlink = "github.com/vishvananda/netlink "
	netns   = "github.com/vishvananda/netns "
	prom    = "github.com/prometheus/client_golang github.com/prometheus/client_model github.com/prometheus/common "
	toml    = "github.com/pelletier/go-toml/v2 "
	xsys    = "golang.org/x/sys "
)

// A rule says what the code of one package may import besides the standard library. Every import goes to a lower
// level; "ours" narrows that down to the packages named, or leaves it open with "*".
type rule struct {
	level        int
	ours, theirs string
}

// rules is the package table of the design. A package without a row is an error.
var rules = map[string]rule{
	"pagepool":            {level: 0},
	"napi":                {level: 0},
	"internal/capability": {level: 0, theirs: xsys},
	"internal/sdnotify":   {level: 0},
	"internal/ethtool":    {level: 0, theirs: netlink + netns + xsys},

	"bulk":            {level: 1, ours: "pagepool"},
	"internal/netlab": {level: 1, ours: "internal/ethtool", theirs: netlink + netns + xsys},

	"internal/xsk":            {level: 2, ours: "pagepool", theirs: asavie + xsys},
	"internal/epoll":          {level: 2, ours: "napi", theirs: xsys},
	"bpf":                     {level: 2, theirs: asavie + ebpf + netlink + netns + xsys},
	"internal/config":         {level: 2, theirs: toml},
	"internal/metrics":        {level: 2, theirs: prom},
	"internal/netlab/labtest": {level: 2, ours: "internal/netlab", theirs: goleak + xsys},

	"internal/xsk/xsktest":   {level: 3, ours: "internal/xsk pagepool", theirs: asavie + xsys},
	"internal/bench":         {level: 3, ours: "*", theirs: asavie + ebpf + netlink + netns + prom + xsys},
	"internal/bench/compare": {level: 4, ours: "internal/bench internal/netlab"},

	"internal/datapath": {level: 4, ours: "pagepool bulk napi internal/xsk internal/epoll", theirs: asavie + xsys},

	"internal/daemon": {level: 5, ours: "*", theirs: ebpf + netlink + netns + prom + xsys},
	"internal/demo":   {level: 6, ours: "*", theirs: xsys},
	"cmd/xskfwd":      {level: 7, ours: "*", theirs: cobra + xsys},

	"internal/e2e":      {level: 7, ours: "*", theirs: asavie + ebpf + netlink + netns + prom + xsys},
	"internal/archtest": {level: 7},
}

// What the documents may tell of before it is there. An entry that is there must go from this list.
const coming = ""

// Tests may import these as well, at any level: they are there for tests.
const (
	testOurs   = "internal/netlab internal/netlab/labtest internal/bench internal/xsk/xsktest"
	testTheirs = "github.com/google/go-cmp " + goleak + netlink
)

// The only directory whose files may import unsafe.
const unsafeHome = "internal/xsk"

// In these packages every atomic store says what it is ordered against.
const orderedPackages = "pagepool internal/xsk internal/xsk/xsktest"

// A forbidden call, and the packages it is allowed in all the same.
type forbidden struct {
	call    string
	inTests bool // forbidden in _test.go files, else in all others
	allowed string
	why     string
}

var forbiddenCalls = []forbidden{
	{"panic", false, "", "an error is returned; on the packet path it is counted"},
	{"os.Exit", false, "cmd/xskfwd internal/bench/compare internal/netlab/labtest", "only main and a TestMain end the process"},
	{"fmt.Print", false, "", "a library has no terminal"},
	{"fmt.Printf", false, "", "a library has no terminal"},
	{"fmt.Println", false, "", "a library has no terminal"},
	{"time.Sleep", true, "", "a test waits for the condition, with a deadline"},
}

func has(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}
