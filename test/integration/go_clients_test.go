package integration

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/PagerDuty/go-pagerduty"
	"github.com/bwmarrin/discordgo"
	"github.com/slack-go/slack"
)

// clientGateway is a gateway for programs that contain the library of another service.
type clientGateway struct {
	host     string // answers the paths of the gateway
	own      string // answers the paths of Opsgenie, as a site of its own does
	requests atomic.Int32
	hook     *webhook
}

// newClientGateway runs a gateway whose key ops sends to the webhook, expects the beat
// nightly and has an inbox. The token of each API is the one that its library can send.
func newClientGateway(t *testing.T) *clientGateway {
	t.Helper()
	g := &clientGateway{hook: newWebhook(t)}
	port, own := freePort(t), freePort(t)
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		queue
		key ops {
			url %s
			inbox 7d
			reader %s
			expect nightly every 24h
		}
		from slack {
			token secret
		}
		from discord {
			token secret
		}
		from pagerduty {
			token secret
		}
		from opsgenie {
			token secret
		}
		from ntfy {
			token secret
		}
		from gotify {
			token Asecretsecret12
		}
	}
}
http://127.0.0.1:%d {
	notify
}
http://127.0.0.1:%d {
	rewrite * /notify/ops/opsgenie{uri}
	notify
}
`, g.hook.to("/hook"), inboxSecret, port, own))
	g.host, g.own = g.count(t, port), g.count(t, own)
	return g
}

// count returns the host of a proxy that counts the requests to the port.
func (g *clientGateway) count(t *testing.T, port int) string {
	t.Helper()
	s := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		g.requests.Add(1)
		r.Out.URL.Scheme, r.Out.URL.Host = "http", fmt.Sprintf("127.0.0.1:%d", port)
	}})
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// refused checks that do fails with an error that contains want, after a single request.
func (g *clientGateway) refused(t *testing.T, want string, do func() error) {
	t.Helper()
	before := g.requests.Load()
	if err := do(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if n := g.requests.Load() - before; n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// wants checks the next message.
func (g *clientGateway) wants(t *testing.T, kind, title, text string) posted {
	t.Helper()
	p := g.hook.next(t)
	if p.Type != kind || p.Title != title || p.Message != text {
		t.Errorf("arrived %+v, want %s, %q, %q", p, kind, title, text)
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSlackGo sends messages and files with slack-go.
func TestSlackGo(t *testing.T) {
	t.Parallel()
	g := newClientGateway(t)
	client := func(token string) *slack.Client {
		return slack.New(token, slack.OptionAPIURL("http://"+g.host+"/notify/ops/slack/api/"))
	}
	_, _, err := client("secret").PostMessageContext(t.Context(), "#ops",
		slack.MsgOptionText("see", false), slack.MsgOptionAttachments(slack.Attachment{Color: "danger", Title: "Disk", Text: "91% full"}))
	must(t, err)
	if p := g.hook.next(t); p.Type != "failure" || !strings.Contains(p.Title+p.Message, "91% full") {
		t.Errorf("arrived %+v", p)
	}
	_, err = client("secret").UploadFileContext(t.Context(), slack.UploadFileParameters{
		Channel: "C024BE7LR", Filename: "graph.txt", Content: "the\x00file", FileSize: 8, InitialComment: "see",
	})
	must(t, err)
	// The file arrives while the SDK uploads it, and the comment when it says so afterwards.
	eventually(t, "the file and the comment arrive", func() bool {
		g.hook.mu.Lock()
		defer g.hook.mu.Unlock()
		return len(g.hook.got) == 2
	})
	g.hook.mu.Lock()
	file, comment := g.hook.got[0], g.hook.got[1]
	g.hook.mu.Unlock()
	if len(file.Attachments) != 1 || file.Attachments[0].Filename != "graph.txt" ||
		string(file.Attachments[0].Base64) != "the\x00file" || comment.Message != "see" {
		t.Errorf("arrived %+v and %+v", file, comment)
	}
	g.refused(t, "invalid_auth", func() error {
		_, _, err := client("wrong").PostMessageContext(t.Context(), "#ops", slack.MsgOptionText("91% full", false))
		return err
	})
	g.refused(t, "no_text", func() error {
		_, _, err := client("secret").PostMessageContext(t.Context(), "#ops")
		return err
	})
}

// TestDiscordGo executes webhooks with discordgo, which has the address in a variable.
func TestDiscordGo(t *testing.T) {
	g := newClientGateway(t)
	discord := discordgo.EndpointWebhooks
	defer func() { discordgo.EndpointWebhooks = discord }()
	discordgo.EndpointWebhooks = "http://" + g.host + "/notify/ops/discord/api/webhooks/"
	session, err := discordgo.New("")
	must(t, err)
	params := &discordgo.WebhookParams{Embeds: []*discordgo.MessageEmbed{{Title: "Disk", Description: "91% full", Color: 0xff0000}}}
	for i := range 10 {
		params.Files = append(params.Files, &discordgo.File{Name: fmt.Sprintf("g%d.txt", i), Reader: strings.NewReader("the\x00file")})
	}
	m, err := session.WebhookExecute("1", "secret", true, params)
	must(t, err)
	if m.ID == "" {
		t.Errorf("answer %+v", m)
	}
	p := g.wants(t, "failure", "Disk", "91% full")
	for i, f := range p.Attachments {
		if f.Filename != fmt.Sprintf("g%d.txt", i) || string(f.Base64) != "the\x00file" {
			t.Errorf("file %d: %+v", i, f)
		}
	}
	if len(p.Attachments) != 10 {
		t.Errorf("%d files", len(p.Attachments))
	}
	g.refused(t, "401", func() error {
		_, err := session.WebhookExecute("1", "wrong", true, &discordgo.WebhookParams{Content: "91% full"})
		return err
	})
}

// TestGoPagerDuty opens and resolves an alert with go-pagerduty.
func TestGoPagerDuty(t *testing.T) {
	t.Parallel()
	g := newClientGateway(t)
	client := pagerduty.NewClient("", pagerduty.WithV2EventsAPIEndpoint("http://"+g.host+"/notify/ops/pagerduty"))
	event := func(token, action string) error {
		e := &pagerduty.V2Event{RoutingKey: token, Action: action, DedupKey: "db1/disk"}
		if action == "trigger" {
			e.Payload = &pagerduty.V2Payload{Summary: "91% full", Source: "db1", Severity: "critical"}
		}
		answer, err := client.ManageEventWithContext(t.Context(), e)
		if err == nil && (answer.Status != "success" || answer.DedupKey != "db1/disk") {
			err = fmt.Errorf("answer %+v", answer)
		}
		return err
	}
	must(t, event("secret", "trigger"))
	p := g.hook.next(t)
	if p.Type != "failure" || p.Title != "91% full" || p.Incident == "" {
		t.Errorf("arrived %+v", p)
	}
	must(t, event("secret", "trigger"))
	must(t, event("secret", "resolve"))
	if r := g.hook.next(t); r.Type != "success" || !strings.HasPrefix(r.Message, "Resolved: 91% full\n") || r.Incident != p.Incident {
		t.Errorf("arrived %+v", r)
	}
	g.refused(t, "401", func() error { return event("wrong", "trigger") })
	var refusal pagerduty.APIError
	if err := event("wrong", "trigger"); !errors.As(err, &refusal) || refusal.StatusCode != http.StatusUnauthorized {
		t.Errorf("error %#v", err)
	}
}

// inboxOf returns the messages of the inbox after the one with the ID, as ntfy's command
// polls them.
func (g *clientGateway) inboxOf(t *testing.T, since string) []string {
	t.Helper()
	resp, err := http.DefaultClient.Do(ntfyRequest(t,
		"http://"+g.host+"/notify/ops/ntfy/alerts/json?poll=1&since="+url.QueryEscape(since), ntfyCommand))
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	return strings.Split(strings.TrimSpace(string(body)), "\n")
}
