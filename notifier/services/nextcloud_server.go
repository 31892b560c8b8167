package services

import (
	"maps"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// nextcloudServer is what the services have in common that speak the Open
// Collaboration Services of a Nextcloud server.
type nextcloudServer struct {
	notifier.Server
	prefix string
	header map[string]string
}

func (n *nextcloudServer) describe(s *notifier.Schema) {
	s.Limits = markup.Limits{Title: 255, Body: 4000}
	s.Server(&n.Server)
	s.String(&n.prefix, "url_prefix", "", "path below which Nextcloud stands")
	s.Headers(&n.header, "header", "HTTP header to add")
}

// request is one to the path below the server's address.
func (n *nextcloudServer) request(path string, body *notifier.Body) *notifier.Request {
	header := map[string]string{"OCS-APIRequest": "true", "Accept": "application/json"}
	maps.Copy(header, n.header)
	return &notifier.Request{
		URL:    n.URL() + notifier.Path(strings.Split(n.prefix, "/")...) + path,
		Header: header, Login: &n.Server, Body: body,
	}
}
