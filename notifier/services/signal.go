package services

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[signal]()

// signal sends through a server that runs signal-cli-rest-api.
type signal struct {
	notifier.Server
	from          string
	targets       []string
	status, batch bool
}

// signalBatch is the maximum number of recipients of a request.
const signalBatch = 10

func (g *signal) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Signal API", "https://bbernhard.github.io/signal-cli-rest-api/"
	s.Setup = "Run signal-cli-rest-api and register or link the number to send from, " +
		"as its documentation shows; GET /v1/groups/{number} lists the IDs of groups."
	s.Groups(notifier.GroupChat, notifier.GroupPhone)
	s.Words("signal messenger", "signal-cli", "signal-cli-rest-api")
	s.URL("signal[s]://[{user}[:{password}]@]{host}[:{port}]/{from_phone}[/{targets...}]")
	s.Limits.Title = 0
	// The markup has no links, and only a field of the API mentions people.
	s.Foreign = &notifier.ForeignText{Escape: chattext.AsIs}
	s.Attachments = true
	s.Server(&g.Server)
	s.String(&g.from, "from_phone", "", "telephone number to send from").Alias("from").Normalize(signalPhone).Example("15551234567")
	s.Phones(&g.targets, "targets", "telephone numbers and @groups; default: the sender").Alias("to").
		Normalize(signalTarget)
	s.Bool(&g.status, "status", false, "put a symbol for the message's type before the text")
	s.Bool(&g.batch, "batch", false, "send to up to 10 targets in one request")
	s.Param("host").Example("signal.local")
}

func signalPhone(text string) (string, error) {
	phone, err := notifier.FullPhone(text)
	return "+" + phone, err
}

var signalGroup = lazyregexp.New(`(?i)^(?:@|@?group\.)([a-z0-9+/_=-]+)$`)

func signalTarget(text string) (string, error) {
	if m := signalGroup.FindStringSubmatch(text); m != nil {
		return "@group." + strings.TrimPrefix(m[1], "group."), nil
	}
	if phone, err := signalPhone(text); err == nil {
		return phone, nil
	}
	return "", errors.New("is not a telephone number with its country code or a @group")
}

func (g *signal) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload := map[string]any{"message": m.Body, "number": g.from, "text_mode": "normal"}
	if g.status {
		payload["message"] = strings.TrimSpace(m.Type.Symbol() + " " + m.Body)
	}
	if m.Format == notifier.Markdown {
		payload["text_mode"] = "styled"
	}
	var files []string
	for _, a := range m.Attachments {
		files = append(files, notifier.Base64(a))
	}
	if files != nil {
		payload["base64_attachments"] = files
	}
	targets := g.targets
	if len(targets) == 0 {
		targets = []string{g.from}
	}
	size := 1
	if g.batch {
		size = signalBatch
	}
	var batches []string
	for batch := range slices.Chunk(targets, size) {
		batches = append(batches, strings.Join(batch, ","))
	}
	return c.Steps.Each(ctx, batches, func(ctx context.Context, batch string) error {
		p := maps.Clone(payload)
		p["recipients"] = strings.Split(strings.ReplaceAll(batch, "@", ""), ",")
		_, err := c.Do(ctx, &notifier.Request{
			URL: g.URL("v2", "send"), Login: &g.Server, Body: notifier.JSON(p, m.Attachments...),
		})
		return err
	})
}
