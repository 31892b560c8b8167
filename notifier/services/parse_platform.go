package services

import (
	"context"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[parsePlatform]()

// parsePlatform pushes to the devices that have an app, through a Parse server.
type parsePlatform struct {
	notifier.Server
	path   []string
	app    string
	key    string
	device string
}

func (p *parsePlatform) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Parse Platform", "https://docs.parseplatform.org/rest/guide/#push-notifications"
	s.Setup = "app_id and master_key are the appId and the masterKey in the configuration of your Parse Server."
	s.Groups(notifier.GroupPhone)
	s.Words("parse server", "back4app")
	s.URL("parsep[s]://{app_id}:{master_key}@{host}[:{port}][/{path...}]")
	s.Server(&p.Server)
	s.Path(&p.path, "path", "path of Parse on the server")
	s.Secret(&p.app, "app_id", "ID of the application").Example("myAppId")
	s.Secret(&p.key, "master_key", "master key").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.Choice(&p.device, "device", "all", []string{"all", "ios", "android"}, "kind of devices to push to")
	s.Param("host").Example("parse.example.com")
}

func (p *parsePlatform) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	devices := []string{p.device}
	if p.device == "all" {
		devices = []string{"ios", "android"}
	}
	return c.PostJSON(ctx, p.URL(append(append([]string{}, p.path...), "parse", "push")...)+"/", map[string]any{
		"where": map[string]any{"deviceType": map[string]any{"$in": devices}},
		"data":  map[string]string{"title": m.Title, "alert": m.Body},
	}, "X-Parse-Application-Id", p.app, "X-Parse-Master-Key", p.key)
}
