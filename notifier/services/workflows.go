package services

import (
	"context"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/jsontemplate"
)

var _ = notifier.Register[workflows]()

// workflows starts a workflow of Microsoft Teams or Power Automate that takes
// an Adaptive Card.
type workflows struct {
	notifier.Server
	workflow  string
	signature string
	image     bool
	automate  bool
	route     string
	wrap      bool
	version   string
	template  jsontemplate.Template
	// Parameters sp and sv of the URL: the permissions and version of the signature.
	permission, signed string
}

func (w *workflows) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Power Automate / Workflows (for MSTeams)",
		"https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using"
	s.Setup = "Open Workflows in the menu of the Teams channel, choose a template that " +
		"starts when a webhook request is received, and copy the URL that it shows in the end."
	s.Groups(notifier.GroupChat)
	s.Words("teams", "microsoft teams", "ms teams", "office teams", "microsoft flow", "power automate")
	s.URL("workflow|workflows://{host}[:{port}]/{workflow}/{signature}")
	s.Native(
		"https://{host...}/workflows/{workflow}/triggers/manual/paths/invoke?sig={signature}",
		"https://{host...}/powerautomate/automations/direct/workflows/{workflow}/triggers/manual/paths/invoke?pa=yes",
		"https://{host...}/powerautomate/automations/direct/cu/{route}/workflows/{workflow}/triggers/manual/paths/invoke?pa=yes",
	)
	s.Hints(
		notifier.Hint{
			Text: `https://[\w-]+\.webhook\.office\.com/\S+`, Is: "the address of a connector",
			Note: "Microsoft has switched off the connectors of Teams; create a workflow in the menu of the channel and paste its address",
		},
		notifier.Hint{
			Text: `https://outlook\.office(?:365)?\.com/webhook/\S+`, Is: "the address of a connector",
			Note: "Microsoft has switched off the connectors of Teams; create a workflow in the menu of the channel and paste its address",
		},
		notifier.Hint{
			Text: `https://teams\.(?:microsoft|live)\.com/\S+`, Is: "a link into Teams",
			Note: "Teams needs the address of a workflow, which you create in the menu of the channel",
		},
	)
	s.Format = notifier.Markdown
	s.Acknowledge = notifier.AcknowledgeByButton
	s.Limits.Body = 1000
	// The mentions of a card are entities, which card leaves out.
	s.Foreign = &notifier.ForeignText{Markdown: true, Title: true, Escape: chattext.AsIs, Mentions: chattext.BreakMarkup}
	s.Server(&w.Server)
	s.Secret(&w.workflow, "workflow", "ID of the workflow: the part of the URL after /workflows/").
		Match(`^[a-z0-9_-]+$`).Alias("id").Example("0123456789abcdef0123456789abcdef")
	s.Secret(&w.signature, "signature", "signature: the parameter sig of the URL").
		Match(`^[a-z0-9_-]+$`).Alias("sig").Example("AbCdEf0123456789GhIjKlMnOpQrStUvWxYz0123456")
	s.Bool(&w.image, "image", true, "show the icon of the message's type")
	s.Bool(&w.automate, "pa", false, "the URL contains /powerautomate/").Alias("powerautomate")
	s.String(&w.route, "route", "", "number after /cu/ in a URL with /powerautomate/").Match(`^[0-9]+$`).Alias("routeid").Example("42")
	s.Bool(&w.wrap, "wrap", true, "break long lines")
	s.String(&w.version, "ver", "", "the parameter api-version of the URL").Alias("api-version")
	s.String(&w.permission, "sp", "/triggers/manual/run", "permissions of the signature: the parameter sp of the URL")
	s.String(&w.signed, "sv", "1.0", "version of the signature: the parameter sv of the URL")
	w.template.Describe(s)
	s.Param("host").Example("prod-00.westeurope.logic.azure.com")
}

func (w *workflows) Finish(s *notifier.Schema) error {
	if w.template.Given() {
		s.Acknowledge = notifier.AcknowledgeInText
	}
	return w.template.Check(checkWorkflowsTemplate)
}

func (w *workflows) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	var path []string
	version := "2016-06-01"
	if w.automate {
		path, version = []string{"powerautomate", "automations", "direct"}, "2022-03-01-preview"
		if w.route != "" {
			path = append(path, "cu", w.route)
		}
	}
	if w.version != "" {
		version = w.version
	}
	payload, err := w.payload(ctx, c, m)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, &notifier.Request{
		URL:   w.URLWith("https", append(path, "workflows", w.workflow, "triggers", "manual", "paths", "invoke")...),
		Query: notifier.Fields("api-version", version, "sp", w.permission, "sv", w.signed, "sig", w.signature),
		Body:  notifier.JSON(payload),
	})
	return err
}

// payload returns the filled template, or the message as a card.
func (w *workflows) payload(ctx context.Context, c *notifier.Client, m *notifier.Message) (any, error) {
	if !w.template.Given() {
		return w.card(m), nil
	}
	icon := ""
	if w.image {
		icon = m.Icon(32)
	}
	return w.template.Fill(ctx, c, jsontemplate.Values(m, icon), checkWorkflowsTemplate)
}

func checkWorkflowsTemplate(t map[string]any) error {
	if t["type"] != "message" {
		return errors.New(`has no "type": "message"`)
	}
	return jsontemplate.Objects(t, "attachments", "contentType")
}

// card returns the message as an Adaptive Card.
// See https://adaptivecards.io/explorer/AdaptiveCard.html.
func (w *workflows) card(m *notifier.Message) any {
	type object = map[string]any
	var body []any
	if icon := m.Icon(32); w.image && icon != "" {
		body = append(body, object{"type": "Image", "url": icon, "height": "32px", "altText": string(m.Type)})
	}
	if m.Title != "" {
		body = append(body, object{"type": "TextBlock", "id": "title", "style": "heading", "weight": "Bolder", "size": "Large", "text": m.Title})
	}
	text := workflowsText(m)
	body = append(body, object{"type": "TextBlock", "id": "body", "style": "default", "text": text, "wrap": w.wrap})
	teams := object{"width": "full"}
	if mentions := workflowsMentions(text); len(mentions) > 0 && !m.Foreign {
		teams["entities"] = mentions
	}
	card := object{
		"$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
		"type":    "AdaptiveCard",
		"version": "1.4",
		"msteams": teams,
		"body":    body,
	}
	if m.Link.URL != "" {
		var actions []any
		for _, l := range m.Buttons(maxButtons) {
			actions = append(actions, object{"type": "Action.OpenUrl", "title": l.Label, "url": l.URL})
		}
		card["actions"] = actions
	}
	return object{
		"type": "message",
		"attachments": []any{object{
			"contentType": "application/vnd.microsoft.card.adaptive",
			"contentUrl":  nil,
			"content":     card,
		}},
	}
}

// workflowsMention is the entity for a person that the text mentions as
// <at>name@example.com</at>. Teams finds the place by the text.
// See https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/cards-format#mention-support-within-adaptive-cards.
type workflowsMention struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Mentioned struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"mentioned"`
}

var workflowsAt = lazyregexp.New(`(?i)<at>([^<]+)</at>`)

// workflowsMentions returns an entity for each mention in the text, without
// those that it repeats.
func workflowsMentions(text string) (out []workflowsMention) {
	seen := map[string]bool{}
	for _, m := range workflowsAt.FindAllStringSubmatch(text, -1) {
		id := strings.TrimSpace(m[1])
		if id == "" || seen[m[0]] {
			continue
		}
		seen[m[0]] = true
		e := workflowsMention{Type: "mention", Text: m[0]}
		e.Mentioned.ID, e.Mentioned.Name = id, id
		out = append(out, e)
	}
	return out
}

var workflowsItem = lazyregexp.New(`^\s*([-*+]|\d+[.)])\s`)

// workflowsText returns the text of the message. In plain text it turns line breaks
// into blank lines, except between list items: a card shows no single line breaks
// elsewhere.
// See https://learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/cards-format.
func workflowsText(m *notifier.Message) string {
	if m.Source != notifier.Text {
		return m.Body
	}
	var b strings.Builder
	list := false
	for i, line := range strings.Split(strings.ReplaceAll(m.Body, "\r\n", "\n"), "\n") {
		item := workflowsItem.MatchString(line)
		switch {
		case i > 0 && list && item:
			b.WriteString("\n")
		case i > 0:
			b.WriteString("\n\n")
		}
		b.WriteString(line)
		list = item
	}
	return b.String()
}
