package mqtt

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/wire"
)

var _ = notifier.Register[service]()

// service publishes to topics of an MQTT server.
type service struct {
	notifier.Server
	wire.Persistent[*connection]
	path        []string
	targets     []string
	topics      []string // of path and targets
	lacksTopics bool
	qos         int
	version     int
	clientID    string
	session     bool
	retain      bool
}

// Versions of the protocol, as in the CONNECT packet.
const (
	version31  = 3
	version311 = 4
	version5   = 5
)

func (q *service) Describe(s *notifier.Schema) {
	s.Name, s.Site = "MQTT", "https://mqtt.org/mqtt-specification/"
	s.Setup = "The host, user and password are those of your MQTT broker."
	s.Groups(notifier.GroupServer, notifier.GroupHome)
	s.NoWeb()
	s.Words("mosquitto", "broker", "iot", "hivemq", "emqx", "zigbee2mqtt", "tasmota")
	s.URL("mqtt[s]://[{user}[:{password}]@]{host}[:{port}][/{topic...}]")
	s.Limits = markup.Limits{Body: 268435455}
	s.Server(&q.Server)
	s.Path(&q.path, "topic", "topic with all its levels, or several, separated by commas").Example("alerts", "disk")
	s.List(&q.targets, "to", "further topics").Alias("targets")
	s.Int(&q.qos, "qos", 0, "quality of service: 0 at most once, 1 at least once, 2 exactly once").Range(0, 2)
	s.Enum(&q.version, "version", "v3.1.1", []notifier.Choice{
		{Name: "v3.1.1", Value: version311, Synonyms: []string{"3.1.1", "v311", "311"}},
		{Name: "v3.1", Value: version31, Synonyms: []string{"3.1", "v31", "31"}},
		{Name: "v5.0", Value: version5, Synonyms: []string{"5.0", "v50", "50"}},
	}, "version of the protocol")
	s.String(&q.clientID, "client_id", "", "client identifier; default: a random one").Match("^[^\x00]*$")
	s.Bool(&q.session, "session", false, "keep the session of client_id on the server")
	s.Bool(&q.retain, "retain", false, "have the server keep the message for later subscribers")
	s.Param("host").Example("mqtt.example.com")
}

// Warning implements notifier.Warner.
func (q *service) Warning() string {
	if q.lacksTopics {
		return "a topic with a wildcard (+ or #), or of more than 65535 bytes, is left out"
	}
	return ""
}

var errTopic = errors.New("a topic to publish to cannot contain the wildcards + and #, and has at most 65535 bytes")

func (q *service) Finish(s *notifier.Schema) error {
	split := func(r rune) bool { return r == ',' || r == ' ' }
	all := append(strings.FieldsFunc(strings.Join(q.path, "/"), split), q.targets...)
	q.topics = slices.DeleteFunc(slices.Clone(all), func(topic string) bool {
		return len(topic) > 65535 || strings.ContainsAny(topic, "+#\x00")
	})
	q.lacksTopics = len(q.topics) < len(all)
	s.Recipients = len(q.topics)
	switch {
	case len(all) == 0:
		return errors.New("the URL has no topic; write one after the host, as in mqtt://example.com/alerts/disk")
	case len(q.topics) == 0:
		return errTopic
	case strings.ContainsRune(q.User, 0):
		return errors.New("the user cannot contain a NUL")
	case q.User == "" && q.Password != "":
		return errors.New("a password needs a user before it")
	}
	if q.Port == 0 {
		q.Port = 1883
		if q.Secure {
			q.Port = 8883
		}
	}
	return nil
}

func (q *service) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	publications := make([]*publication, len(q.topics))
	for i, topic := range q.topics {
		publications[i] = &publication{topic: topic, body: []byte(m.Body), qos: byte(q.qos), retain: q.retain, id: q.nextID()}
	}
	open := func(ctx context.Context) (*connection, error) { return q.open(ctx, c) }
	return q.Do(ctx, wire.IdleTimeout, open, func(ctx context.Context, conn *connection) error {
		conn.conn.ResetReadLimit()
		var errs []error
		for i, p := range publications {
			err := c.Steps.Once(p.topic, func() error { return conn.publish(ctx, c, p) })
			if errors.Is(err, wire.ErrBroken) {
				return err
			}
			if err != nil && len(publications) > 1 {
				err = fmt.Errorf("topic %d of %d: %w", i+1, len(publications), err)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// nextID returns a random packet identifier. A sequence would collide with
// identifiers that a kept session still knows.
func (q *service) nextID() uint16 {
	var b [2]byte
	for b == [2]byte{} {
		_, _ = rand.Read(b[:]) // never fails
	}
	return uint16(b[0])<<8 | uint16(b[1])
}
