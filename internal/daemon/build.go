// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"runtime/debug"

	"github.com/xskfwd/xskfwd/internal/metrics"
)

// daemonFacts says which program this is.
func (o *observer) daemonFacts() metrics.Daemon {
	f := metrics.Daemon{StartTime: o.started, ConfigLoaded: o.started, ConfigOK: true}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return f
	}
	f.Version, f.GoVersion = info.Main.Version, info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			f.Revision = s.Value
		}
	}
	return f
}
