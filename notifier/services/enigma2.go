package services

import (
	"context"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[enigma2]()

// enigma2 shows the message on the television that is connected to a receiver with
// Enigma2 and OpenWebif.
type enigma2 struct {
	notifier.Server
	path    []string
	timeout int
	header  map[string]string
}

func (e *enigma2) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Enigma2", "https://github.com/E2OpenPlugins/e2openplugin-OpenWebif/wiki/OpenWebif-API-documentation"
	s.Setup = "The receiver must run OpenWebif; user and password are only needed if the settings of OpenWebif require a login."
	s.Groups(notifier.GroupMedia, notifier.GroupHome)
	s.Words("dreambox", "vu+", "openwebif", "satellite receiver", "tv")
	s.URL("enigma2[s]://[{user}[:{password}]@]{host}[:{port}][/{path...}]")
	s.Limits = markup.Limits{Body: 1000}
	s.Acknowledge = notifier.AcknowledgeNowhere
	s.Server(&e.Server)
	s.Path(&e.path, "path", "path of OpenWebif on the receiver")
	s.Int(&e.timeout, "timeout", 13, "seconds to show the message; -1 for no limit").Normalize(enigma2Timeout).Range(-1, 86400).Lenient()
	s.Headers(&e.header, "headers", "HTTP header to add")
	s.Param("host").Example("vuplus.local")
}

// enigma2Timeout returns -1 for any negative number.
func enigma2Timeout(s string) (string, error) {
	if digits, negative := strings.CutPrefix(s, "-"); negative && strings.Trim(digits, "0123456789") == "" {
		return "-1", nil
	}
	return s, nil
}

var enigma2Types = map[notifier.Type]string{
	notifier.Info: "1", notifier.Success: "1", notifier.Warning: "2", notifier.Failure: "3",
}

func (e *enigma2) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	var answer struct {
		Result  bool
		Message string
	}
	err := c.DoJSON(ctx, &notifier.Request{
		URL:    e.URL(append(append([]string{}, e.path...), "api", "message")...),
		Query:  notifier.Fields("text", m.Body, "type", enigma2Types[m.Type], "timeout", strconv.Itoa(e.timeout)),
		Header: e.header,
		Login:  &e.Server,
	}, &answer)
	if err == nil && !answer.Result {
		err = refusedError(0, answer.Message)
	}
	return err
}
