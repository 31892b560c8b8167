package services

import (
	"cmp"
	"errors"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

var _ = notifier.Register[ntfy]()

// ntfy publishes to topics of ntfy.sh or of a self-hosted server.
type ntfy struct {
	notifier.Server
	topic    string
	targets  []string
	token    string
	auth     string
	mode     string
	attach   string
	filename string
	image    bool
	icon     string
	click    string
	delay    string
	email    string
	priority int
	tags     []string
	actions  string

	topics []string // all topics in the URL, set by Finish
}

const (
	// ntfyMessage is the max size of a message in bytes. A longer one is sent as a
	// file, with its beginning as the message.
	ntfyMessage = 4096

	// ntfyJSON is the max size of a JSON request in bytes. A message that takes more,
	// because JSON escapes much of it, is sent as a file, too.
	ntfyJSON = 8000

	// ntfyQuery is the max size in bytes of a text in the address of a file.
	// Servers and proxies may refuse longer addresses.
	ntfyQuery = 2000
)

func (n *ntfy) Describe(s *notifier.Schema) {
	s.Name, s.Site = "ntfy", "https://docs.ntfy.sh/publish/"
	s.Setup = "Choose a topic that nobody can guess, or for a protected one create an access token (tk_…) under Account in the web app."
	s.Groups(notifier.GroupPhone)
	s.Words("push", "phone", "iphone", "ios", "android", "apple", "unifiedpush", "self-hosted push", "ntfy.sh")
	s.URL(
		"ntfy[s]://[{user}[:{password}]@]{host}[:{port}]/{targets...}",
		"ntfy[s]://[{user}[:{password}]@]{topic}",
	)
	s.Way(2, "with a topic of ntfy.sh")
	s.Way(1, "with a server of your own")
	s.Native(
		"https://ntfy.sh[/{targets...}]?mode=cloud&host=ntfy.sh",
		"http://ntfy.sh[/{targets...}]?mode=cloud&host=ntfy.sh",
	)
	s.Hints(
		notifier.Hint{Text: `(?<token>tk_[a-z0-9]{29})`, Is: "an access token"},
		notifier.Hint{Text: `(?<address>)(?:/(?<targets>[\w-]{1,64}))?/?`, Is: "the address of a server, with its topic", Guess: true},
	)
	s.Attachments = true
	s.Incidents(notifier.Open, notifier.Updated, notifier.Acknowledged, notifier.Resolved)
	s.Limits = markup.Limits{Unit: markup.UTF8Bytes, Title: 600, Body: ntfyMessage}
	s.Acknowledge = notifier.AcknowledgeByButton
	s.Server(&n.Server)
	s.String(&n.topic, "topic", "", "topic of ntfy.sh, or several, separated by commas").Match(ntfyTopics).Example("my-alerts-x7f3")
	s.List(&n.targets, "targets", "topics").Alias("to").Match(ntfyTopic).DropInvalid().Example("alerts")
	s.Secret(&n.token, "token", "access token (tk_…), instead of user and password")
	s.Choice(&n.auth, "auth", "", []string{"basic", "token"}, "what user and password hold; default: token for a user tk_…, else basic")
	s.Choice(&n.mode, "mode", "", []string{"cloud", "private"}, "post to ntfy.sh or to the host; default: by the URL")
	s.String(&n.attach, "attach", "", "address of a file for the server to attach")
	s.String(&n.filename, "filename", "", "name of that file").Normalize(ntfyBase)
	s.Bool(&n.image, "image", true, "show the icon of the message's type")
	s.String(&n.icon, "avatar_url", "", "address of a picture to show instead of that icon")
	s.String(&n.click, "click", "", "address to open when the notification is clicked")
	s.String(&n.delay, "delay", "", "deliver later: seconds, 30m, tomorrow 10am")
	s.String(&n.email, "email", "", "e-mail address to forward to")
	s.Enum(&n.priority, "priority", "auto", []notifier.Choice{
		{Name: "auto", Value: 0},
		{Name: "min", Value: 1},
		{Name: "low", Value: 2, Synonyms: []string{"moderate"}},
		{Name: "default", Value: 3, Synonyms: []string{"normal"}},
		{Name: "high", Value: 4},
		{Name: "max", Value: 5, Synonyms: []string{"urgent", "emergency"}},
	}, "priority of the message; auto: high for a failure, else default").Lenient()
	s.List(&n.tags, "xtags", "tags, shown as emojis if they are names of some; default: by the type").Alias("tags")
	s.String(&n.actions, "actions", "", "buttons, as in view, Open, https://example.com")
	s.Param("host").Example("ntfy.example.com")
}

const (
	ntfyTopic  = `^[a-z0-9_-]{1,64}$`
	ntfyTopics = `^[a-z0-9_-]{1,64}(,[a-z0-9_-]{1,64})*$`
)

func ntfyBase(s string) (string, error) { return s[strings.LastIndexByte(s, '/')+1:], nil }

func (n *ntfy) Finish(s *notifier.Schema) error {
	if ntfyFreeActions(n.actions) == 0 {
		s.Acknowledge = notifier.AcknowledgeInText
	}
	n.topics = n.targets
	if n.mode == "" && n.topic != "" {
		n.mode = "cloud"
	}
	if n.mode == "cloud" {
		if n.Host != "" && !strings.EqualFold(n.Host, "ntfy.sh") && !ntfyIsTopic.MatchString(n.Host) {
			return errors.New("mode=cloud posts to ntfy.sh, so the host must be a topic of it, " +
				"as in ntfy://topic; leave mode out to post to the host")
		}
		for _, t := range []string{n.Host, n.topic} {
			if t != "" && !strings.EqualFold(t, "ntfy.sh") {
				n.topics = append(strings.Split(t, ","), n.topics...)
			}
		}
	} else if n.topic != "" {
		return errors.New("mode=private needs a host before the topic, as in ntfys://ntfy.example.com/topic")
	}
	if s.Recipients = len(n.topics); s.Recipients == 0 {
		return errors.New("the URL has no topic; add one to the path, as in ntfys://ntfy.example.com/topic")
	}
	if n.auth == "token" || n.auth == "" && (n.token != "" || n.Password == "" && ntfyToken.MatchString(n.User)) {
		// Only the field token is a secret.
		n.token, n.User, n.Password = cmp.Or(n.token, n.Password, n.User), "", ""
		if n.token == "" {
			return errors.New("auth=token needs a token, as in ntfys://tk_abc@ntfy.example.com/topic")
		}
		return nil
	}
	n.token = ""
	return nil
}

var ntfyIsTopic = lazyregexp.New("(?i)" + ntfyTopic)

var ntfyToken = lazyregexp.New(`(?i)^tk_\S+`)
