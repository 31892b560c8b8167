package notifier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// probe is a service for tests. It has a parameter of each kind and posts its
// messages to its server.
type probe struct {
	Server
	path    []string
	token   string
	level   int
	mode    string
	ratio   float64
	count   int
	quiet   bool
	targets []string
	users   []string
	phones  []string
	header  map[string]string

	sends  atomic.Int32
	closed atomic.Int32 // calls of Close
}

var _ = Register[probe]()

func (p *probe) Close() error {
	p.closed.Add(1)
	if p.mode == "panic" {
		panic("once more")
	}
	return nil
}

func (p *probe) Describe(s *Schema) {
	s.Name, s.Site = "Probe", "https://example.com/probe"
	s.URL(
		"probe[s]|prb://[{user}[:{password}]@]{host}[:{port}][/{path...}]/{token}",
		"many://{token}/{targets...}",
	)
	s.Native("https://{host...}/in/{token}[/{targets...}]")
	s.Attachments = true
	s.Limits = markup.Limits{Title: 250, Body: 1000}
	s.Server(&p.Server)
	s.Path(&p.path, "path", "where the service is mounted")
	s.Secret(&p.token, "token", "the token").Match(`^[a-z0-9-]+$`).Alias("key")
	s.Enum(&p.level, "level", "normal",
		[]Choice{{Name: "low", Value: -1}, {Name: "normal", Value: 0}, {Name: "high", Value: 5, Synonyms: []string{"urgent"}}},
		"how loud").Lenient()
	s.Choice(&p.mode, "mode", "post", []string{"post", "panic", "hang", "deaf", "each", "once", "value", "skip"}, "what to do")
	s.Float(&p.ratio, "ratio", 0.5, "a share").Range(0, 1)
	s.Int(&p.count, "count", 3, "a number").Range(1, 10)
	s.Bool(&p.quiet, "quiet", false, "make no sound")
	s.List(&p.targets, "targets", "who gets it", Prefixed{Prefix: "@", Items: &p.users, Doc: "a user"}).Alias("to")
	s.Phones(&p.phones, "phones", "numbers to call").DropInvalid()
	s.Map(&p.header, "+", "header", "HTTP header")
}

func (p *probe) Finish(s *Schema) error {
	if p.quiet && p.level > 0 {
		return errors.New("a message cannot be quiet and loud; drop quiet or level")
	}
	if s.Scheme == "many" && p.Host == "" {
		p.Host = "example.com"
	}
	return nil
}

func (p *probe) Send(ctx context.Context, c *Client, m *Message) error {
	n := p.sends.Add(1)
	switch p.mode {
	case "panic":
		panic("with the token " + p.token)
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	case "deaf":
		time.Sleep(time.Minute)
	case "skip":
		if !strings.Contains(m.Body, "wanted") {
			c.Skip("nothing to do for %s", p.token)
			return nil
		}
	case "each":
		return c.Steps.Each(ctx, p.targets, func(ctx context.Context, target string) error {
			return c.PostJSON(ctx, p.URL(target), m.Body)
		})
	case "value":
		number, err := OnceValue(c.Steps, "upload", func() (int, error) { return 7, c.PostJSON(ctx, p.URL("upload"), n) })
		if err != nil {
			return err
		}
		return c.PostJSON(ctx, p.URL(fmt.Sprint(number), "file"), n)
	case "once":
		if err := c.Steps.Once("upload", func() error { return c.PostJSON(ctx, p.URL("upload"), n) }); err != nil {
			return err
		}
	}
	parts := []FormPart{{Name: "title", Value: m.Title}, {Name: "body", Value: m.Body}, {Name: "token", Value: p.token}}
	for _, a := range m.Attachments {
		parts = append(parts, FormPart{Name: "file", File: a})
	}
	return c.Post(ctx, p.URL(append(p.path, "send")...), Multipart(parts...), p.header)
}

// plain is a service without state.
type plain struct{ Server }

var _ = Register[plain]()

func (p *plain) Describe(s *Schema) {
	s.Name, s.Site = "Plain", "https://example.com/plain"
	s.URL("plain://{host}")
	s.Server(&p.Server)
}

func (p *plain) Send(context.Context, *Client, *Message) error { return nil }

// login is a service with other names for user and password, and parameters
// without effect.
type login struct {
	sid, auth, token string
	targets          []string
}

var _ = Register[login]()

func (l *login) Describe(s *Schema) {
	s.Name, s.Site = "Login", "https://example.com/login"
	s.URL("login://{sid}:{auth}@{token}/{targets...}", "login://{token}/{targets...}")
	s.Native("https://login.example.com/{token}/{targets...}")
	s.String(&l.sid, "sid", "", "account")
	s.Secret(&l.auth, "auth", "its secret")
	s.String(&l.token, "token", "", "the token")
	s.List(&l.targets, "targets", "who gets it")
	s.Ignore("cache", "nothing is cached", "yes", "no")
	s.Ignore("-*", "there are no fields")
}

func (l *login) Send(context.Context, *Client, *Message) error { return nil }
