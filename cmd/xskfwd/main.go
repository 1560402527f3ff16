// SPDX-License-Identifier: Apache-2.0

// Command xskfwd forwards packets between network ports through AF_XDP sockets.
package main

import "os"

func main() {
	e := system()
	os.Exit(e.main(os.Args[1:]))
}
