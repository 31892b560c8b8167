package services

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[kodi]()

// kodi shows a notification on the screen of Kodi, formerly XBMC.
type kodi struct {
	notifier.Server
	duration int
	image    bool
	xbmc     bool // by the scheme
}

func (k *kodi) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Kodi/XBMC", "https://kodi.wiki/view/JSON-RPC_API/v13#GUI.ShowNotification"
	s.Setup = "Turn on Allow remote control via HTTP in Kodi under Settings, Services, Control, which also shows the port and the user name."
	s.Groups(notifier.GroupMedia)
	s.Words("tv", "htpc", "libreelec", "raspberry pi")
	s.URL("kodi[s]|xbmc[s]://[{user}[:{password}]@]{host}[:{port}]")
	s.Limits.Lines = 2
	s.Acknowledge = notifier.AcknowledgeNowhere
	s.Server(&k.Server)
	s.Int(&k.duration, "duration", 12, "seconds to show the notification for").Range(1, 86400).Normalize(kodiDuration).Lenient()
	s.Bool(&k.image, "image", true, "show the icon of the message's type")
	s.Param("host").Example("kodi.local")
}

// kodiDuration drops a leading minus sign, which some URLs in use have.
func kodiDuration(s string) (string, error) { return strings.TrimPrefix(s, "-"), nil }

func (k *kodi) Finish(s *notifier.Schema) error {
	k.xbmc = strings.HasPrefix(s.Scheme, "xbmc")
	return nil
}

var kodiTypes = map[notifier.Type]string{
	notifier.Info: "info", notifier.Success: "info", notifier.Warning: "warning", notifier.Failure: "error",
}

func (k *kodi) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	params := map[string]any{"title": m.Title, "message": m.Body, "displaytime": k.duration * 1000}
	payload := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "GUI.ShowNotification", "params": params}
	if k.image {
		// These are the names of icons that Kodi has.
		params["image"] = kodiTypes[m.Type]
		if icon := m.Icon(128); icon != "" {
			params["image"] = icon
		}
		if !k.xbmc {
			payload["type"] = kodiTypes[m.Type]
		}
	}
	server := k.Server
	if k.xbmc && server.Port == 0 {
		server.Port = 8080 // the default of XBMC
	}
	resp, err := c.Do(ctx, &notifier.Request{URL: server.URL("jsonrpc"), Login: &k.Server, Body: notifier.JSON(payload)})
	if err != nil {
		return err
	}
	var answer struct {
		Error *struct {
			Code    int
			Message string
		}
	}
	if json.Unmarshal(resp.Body, &answer) == nil && answer.Error != nil {
		return refusedError(answer.Error.Code, answer.Error.Message)
	}
	return nil
}
