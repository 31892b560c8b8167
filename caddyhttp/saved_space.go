package caddyhttp

import (
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
)

// siteBlock identifies a notify block of a Caddyfile. Caddy copies the handler of a
// site with several addresses into several servers.
type siteBlock struct {
	line  string
	block int
}

// saved.ConfigsOwner returns who has the configs of s, whose module is self.
func (s *Settings) configsOwner(self any) saved.ConfigsOwner {
	o := saved.ConfigsOwner{ID: self}
	if info := s.Caddyfile; info != nil {
		if o.At = info.Line("configs"); o.At != "" && info.Imports != "" {
			o.At += ", through " + info.Imports
		}
		if info.Block != 0 {
			o.ID = siteBlock{info.Lines[block.Begin], info.Block}
		}
	}
	return o
}
