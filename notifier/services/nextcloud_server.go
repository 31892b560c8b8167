package services

import (
	"maps"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// nextcloudServer is the common part of services that use the Open Collaboration
// Services (OCS) API of a Nextcloud server.
type nextcloudServer struct {
	notifier.Server
	prefix string
	header map[string]string
}

func (n *nextcloudServer) describe(s *notifier.Schema) {
	s.Limits = markup.Limits{Title: 255, Body: 4000}
	s.Server(&n.Server)
	s.String(&n.prefix, "url_prefix", "", "path of Nextcloud on the server")
	s.Headers(&n.header, "headers", "HTTP header to add")
}

// request returns a request to a path of the server.
func (n *nextcloudServer) request(path string, body *notifier.Body) *notifier.Request {
	header := map[string]string{"OCS-APIRequest": "true", "Accept": "application/json"}
	maps.Copy(header, n.header)
	return &notifier.Request{
		URL:    n.URL() + notifier.Path(strings.Split(n.prefix, "/")...) + path,
		Header: header, Login: &n.Server, Body: body,
	}
}
