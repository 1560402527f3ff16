// SPDX-License-Identifier: Apache-2.0

package daemon

type service struct{}

func (service) ready()    {}
func (service) stopping() {}
