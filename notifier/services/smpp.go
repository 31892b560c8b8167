package services

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

var _ = notifier.Register[smpp]()

// smpp sends text messages through the message centre of a provider, over SMPP 3.4.
type smpp struct {
	notifier.Server
	sms
	from string
	link wire.Persistent[*smppLink]
}

func (x *smpp) Describe(s *notifier.Schema) {
	s.Name, s.Site = "SMPP", "https://smpp.org/SMPP_v3_4_Issue1_2.pdf"
	s.Setup = "Your SMS provider gives you the host, the port, the system ID (the " +
		"user) and the password of its SMPP server, and the number to send from."
	s.Groups(notifier.GroupSMS)
	s.NoWeb()
	s.Words("short message peer-to-peer", "kannel", "carrier", "sms center")
	s.URL("smpp[s]://{user}:{password}@{host}[:{port}]/{from_phone}/{targets...}")
	s.Server(&x.Server)
	smsSender(s, &x.from, "from_phone").Alias("from")
	x.describe(s, notifier.FullPhone)
	s.Limits.Body = 32768
	s.Param("host").Example("smpp.example.com")
	s.Param("user").Example("alice")
	s.Param("password").Example("pa55word")
}

func (x *smpp) Finish(s *notifier.Schema) error {
	// SMPP sends both as strings that end at a NUL.
	if strings.ContainsRune(x.User+x.Password, 0) {
		return errors.New("the user or the password contains a NUL (%00); write %25 for a percent sign")
	}
	return x.sms.Finish(s)
}

func (x *smpp) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	coding, parts, err := smppParts(m.Body)
	if err != nil {
		return err
	}
	group, err := notifier.OnceValue(c.Steps, "group", func() (byte, error) { return smppGroup(), nil })
	if err != nil {
		return err
	}
	return c.Steps.Each(ctx, x.targets, func(ctx context.Context, target string) error {
		for i, part := range parts {
			err := c.Steps.Once(fmt.Sprintf("part %d for %s", i+1, target), func() error {
				message := smppMessage{from: x.from, to: target, coding: coding.DataCoding(), text: part}
				if len(parts) > 1 {
					message.header = []byte{5, 0, 3, group, byte(len(parts)), byte(i + 1)} // 3GPP TS 23.040, section 9.2.3.24.1
				}
				return x.link.Do(ctx, wire.IdleTimeout, x.open(c), func(ctx context.Context, l *smppLink) error {
					return l.submit(ctx, c.AnswerTimeout(), message)
				})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Close ends the session, if there is one.
func (x *smpp) Close() error { return x.link.Close() }

// open returns a function that connects and begins a session.
func (x *smpp) open(c *notifier.Client) func(context.Context) (*smppLink, error) {
	return func(ctx context.Context) (*smppLink, error) {
		port, config := 2775, (*tls.Config)(nil)
		if x.Secure {
			port, config = 3550, wire.TLSConfig(c, x.Host)
		}
		conn, err := wire.Dial(ctx, c, x.Host, cmp.Or(x.Port, port), config)
		if err != nil {
			return nil, err
		}
		l := &smppLink{conn: conn}
		if err := l.bind(ctx, c.AnswerTimeout(), x.User, x.Password); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return l, nil
	}
}
