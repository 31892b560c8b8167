package services

import (
	"context"
	"encoding/json"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[synology]()

// synology posts to a channel of Synology Chat through its incoming webhook.
type synology struct {
	notifier.Server
	token   string
	path    []string
	slash   bool
	fileURL string
	header  map[string]string
}

func (y *synology) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Synology Chat", "https://kb.synology.com/en-global/DSM/help/Chat/chat_integration"
	s.Setup = "Create an incoming webhook in Synology Chat, in the menu of your profile picture " +
		"under Integration, and copy the text between the two %22 after token= in its URL."
	s.Groups(notifier.GroupChat)
	s.Words("nas", "dsm", "diskstation")
	s.URL("synology[s]://[{user}[:{password}]@]{host}[:{port}]/{token}[/{path...}]")
	s.Hints(
		notifier.Hint{
			Text: `(?<address>)/webapi/entry\.cgi\?\S*token=(?:%22|\")(?<token>[^%\"\s]+)(?:%22|\")\S*`,
			Is:   "the address of a webhook",
		},
	)
	s.Limits.Title = 0
	// A link is <address|text>.
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs, Mentions: chattext.BreakAll}
	s.Server(&y.Server)
	s.Secret(&y.token, "token", "token of the webhook").Example("AbCdEf0123456789GhIjKlMnOpQrStUv")
	s.Path(&y.path, "path", "path on the server before /webapi")
	s.TrailingSlash(&y.slash)
	s.String(&y.fileURL, "file_url", "", "URL of a file for Synology Chat to fetch and show")
	s.Headers(&y.header, "headers", "HTTP header to add")
	s.Param("host").Example("nas.local")
}

func (y *synology) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	address := y.URL(y.path...)
	if y.slash { // the slash is part of the path
		address += "/"
	}
	payload := `{"text": ` + synologyText(m.Body)
	if y.fileURL != "" {
		payload += `, "file_url": ` + synologyText(y.fileURL)
	}
	return checkedDo(ctx, c, &notifier.Request{
		URL:    address + "/webapi/entry.cgi",
		Query:  notifier.Fields("api", "SYNO.Chat.External", "method", "incoming", "version", "2", "token", y.token),
		Header: y.header,
		Login:  &y.Server,
		Body:   notifier.Form(notifier.Fields("payload", payload+"}")),
	}, "success", "error")
}

// synologyText returns s as a JSON string. The HTML escapes of encoding/json are
// valid JSON.
func synologyText(s string) string {
	b, _ := json.Marshal(s) // cannot fail for a string
	return string(b)
}
