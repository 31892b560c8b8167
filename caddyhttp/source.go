package caddyhttp

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

// Source sets how requests of a program become messages, and which signature or token the
// requests must have. A built-in source needs no settings. Templates have the syntax of Go's
// text/template and the functions of docs/templates.md. Placeholders such as
// `{env.GRAFANA_SECRET}` are replaced in `secret` and `token` when the configuration loads, and
// are not replaced in templates.
type Source struct {
	// The template of the title. Default: the built-in source's.
	Title string `json:"title,omitempty"`

	// The path of a file with the template of the title. In JSON, paths are
	// relative to the working directory. Default: none.
	TitleFile string `json:"title_file,omitempty"`

	// The template of the body. Default: the built-in source's, or the title.
	Body string `json:"body,omitempty"`

	// The path of a file with the template of the body. Default: none.
	BodyFile string `json:"body_file,omitempty"`

	// A template for the type: `info`, `success`, `warning`, `failure`, or a common word of
	// alerting such as `firing` or `resolved`. Default: the built-in source's, or `info`.
	Type string `json:"type,omitempty"`

	// Types for words that the template for the type may return. Example:
	// `{"broken": "failure", "partial": "warning"}`. Default: none.
	Types map[string]string `json:"types,omitempty"`

	// A template for preferred tags, separated by commas or spaces. If URLs of the
	// key have one of these tags, the message goes to those URLs. If no URL has one,
	// the tags are ignored. Default: the built-in source's, or none.
	Tag string `json:"tag,omitempty"`

	// A template for the format of the body: `text`, `markdown` or `html`.
	// Default: the built-in source's, or `text`.
	Format string `json:"format,omitempty"`

	// A template for the incident: the name of what the message is about, which is
	// the same in all messages about one alert, from the first to the last. Services
	// that understand incidents show these messages as one. Example:
	// `{{.host}} {{.job}}`. Default: the built-in source's, or none.
	Incident string `json:"incident,omitempty"`

	// A template that returns `true` for payloads to ignore. The response to
	// them is 200, and nothing is sent. Default: none.
	Skip string `json:"skip,omitempty"`

	// Attaches the images whose addresses are in the payload of a built-in
	// source, which are fetched under the rules of `egress`, and the files of a form, also
	// for a source of your own. Default: false.
	Images bool `json:"images,omitempty"`

	// Whether a text of the payload can mention people and groups at a destination,
	// and link a text to an address. Otherwise the destination shows it as it is.
	// `true` is for a source whose senders are trusted, or whose template mentions
	// somebody. Default: true for a source that is the API of a chat or push service,
	// such as `slack`, and false for all others.
	Mentions *bool `json:"mentions,omitempty"`

	// The scheme of the signature that requests must have: `github`, `grafana`,
	// `sentry`, `stripe`, `standard` (Standard Webhooks and Svix), `slack` or `sns`. Default:
	// none, or `sns` for the source `sns`.
	Sign string `json:"sign,omitempty"`

	// The secret of the signature. All schemes need one except `sns`. Example:
	// `{env.GRAFANA_SECRET}`.
	Secret string `json:"secret,omitempty"`

	// The token that requests must have: in `?token=`, in `Authorization: Bearer`,
	// or in another place where the program can put it. Example: `{env.SLACK_TOKEN}`. Default:
	// none.
	Token string `json:"token,omitempty"`

	// Of the source `prometheus`: further labels that all alerts of an incident share,
	// besides `alertname`. Example: `["cluster"]`. Default: none.
	GroupBy []string `json:"group_by,omitempty"`

	// Of the source `prometheus`: how long the alerts of a new incident are collected. A
	// duration from 1s to 24h. Default: 30s.
	GroupWait caddy.Duration `json:"group_wait,omitempty"`

	// Of the source `prometheus`: how long changes of an open incident are collected. A
	// duration from 1s to 24h. Default: 5m.
	GroupInterval caddy.Duration `json:"group_interval,omitempty"`
}

// MarshalLogObject implements zapcore.ObjectMarshaler. It prints no secrets and
// no templates.
func (s *Source) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("sign", s.Sign)
	enc.AddBool("token", s.Token != "")
	return nil
}

// checkSourceName returns an error if name is malformed or reserved.
func checkSourceName(name string) error {
	if !site.IsSourceName(name) {
		return errors.New("the name of a source must be 1 to 64 letters, digits, _ and -")
	}
	switch { // in any case, as in site.ContainsFold
	case strings.EqualFold(name, site.SourceSMTP):
		return errors.New("smtp cannot be the name of a source, because it stands for mails in accept; choose another name")
	case strings.EqualFold(name, site.SourceExpect):
		return errors.New("expect cannot be the name of a source, because it " +
			"stands for the gateway's own messages about beats; choose another name")
	case strings.EqualFold(name, site.SourceDirect):
		return errors.New("direct cannot be the name of a source, because it stands " +
			"for messages to /notify/{KEY} itself in accept; choose another name")
	case site.IsReservedSource(name) && name != site.SourceRuler && source.Lookup(name) == nil:
		return fmt.Errorf("%s cannot be the name of a source, because "+
			"/notify/{KEY}/%s is an address of the gateway itself; choose another name",
			name, strings.ToLower(name))
	}
	return nil
}

// maxTemplateSize is the maximum size of a template file, in bytes.
const maxTemplateSize = 256 << 10

// load returns the source with these settings, after reading its files and replacing
// placeholders.
func (s *Source) load(name string) (*source.Source, error) {
	if err := checkSourceName(name); err != nil {
		return nil, err
	}
	switch {
	case s == nil:
		return nil, errors.New("it is empty; remove it, or give it a title or a token")
	case len(s.GroupBy) > 0 || s.GroupWait != 0 || s.GroupInterval != 0:
		return nil, errors.New("group_by, group_wait and group_interval are for the source prometheus only; remove them")
	}
	c := source.Config{
		Name:      name,
		Templates: source.Templates{Title: s.Title, Body: s.Body, Type: s.Type, Tag: s.Tag, Format: s.Format, Incident: s.Incident, Skip: s.Skip},
		Types:     s.Types, Images: s.Images, Mentions: s.Mentions, Scheme: s.Sign,
	}
	for _, f := range []struct {
		setting, path string
		to            *string
	}{{"title_file", s.TitleFile, &c.Title}, {"body_file", s.BodyFile, &c.Body}} {
		if f.path == "" {
			continue
		}
		if *f.to != "" {
			return nil, fmt.Errorf("%s: there is a template in the configuration as well; remove one of them", f.setting)
		}
		text, err := readTemplate(f.path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.setting, err)
		}
		*f.to = text
	}
	switch {
	case s.Sign == "" && s.Secret != "":
		return nil, errors.New("it has a secret but no signature scheme; set sign")
	case s.Sign != "" && source.NeedsSecret(s.Sign) && s.Secret == "":
		return nil, fmt.Errorf("sign %s: the secret is missing; write sign %s {env.NAME}", s.Sign, s.Sign)
	}
	var err error
	if c.Secret, err = placeholder.Resolve(s.Secret); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if c.Token, err = placeholder.Resolve(s.Token); err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	c.Secret, c.Token = strings.TrimSpace(c.Secret), strings.TrimSpace(c.Token)
	if s.Token != "" && c.Token == "" {
		return nil, errors.New("token: it is empty; write the token of the program that sends")
	}
	return source.New(c)
}

func readTemplate(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", errs.WithoutPath(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxTemplateSize {
		return "", fmt.Errorf("a template must be a file of at most %d KiB", maxTemplateSize>>10)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", errs.WithoutPath(err)
	}
	return string(text), nil
}

// resolveSources returns the sources of s, and the sources of base that s does not set.
func (s *Settings) resolveSources(base source.Set) (source.Set, error) {
	sources := source.Set{}
	for _, name := range slices.Sorted(maps.Keys(s.Sources)) {
		if name == site.SourceRuler {
			continue
		}
		src, err := s.Sources[name].load(name)
		if err != nil {
			return nil, s.Caddyfile.Locate("from "+name, errs.Prefix("from "+name, err))
		}
		sources[name] = src
	}
	return sources.Inherit(base), nil
}

// readFrom reads the block of a from subdirective.
func (b *settingsBlock) readFrom(d *caddyfile.Dispenser, args []string) error {
	name := args[0]
	if err := checkSourceName(name); err != nil {
		return d.WrapErr(err)
	}
	if b.to.Sources[name] != nil {
		return d.Errf("the source %s occurs twice; write all its settings into one block", name)
	}
	b.to.Caddyfile.Record("from "+name, d)
	start := *d
	s := &Source{}
	options := s.options()
	if name == site.SourceRuler {
		options = s.rulerOptions()
	}
	if err := block.Read(d, "from", options); err != nil {
		return err
	}
	if b.to.Sources == nil {
		b.to.Sources = map[string]*Source{}
	}
	b.to.Sources[name] = s
	if !s.isSelfContained() {
		return nil
	}
	var err error
	if name == site.SourceRuler {
		_, err = s.loadRuler()
	} else {
		_, err = s.load(name)
	}
	if err != nil {
		return start.WrapErr(err)
	}
	return nil
}

// isSelfContained reports whether the source can be loaded while the Caddyfile is
// adapted. Files and environment variables may exist only on the machine that runs
// the configuration.
func (s *Source) isSelfContained() bool {
	return s.TitleFile == "" && s.BodyFile == "" && !strings.Contains(s.Secret+s.Token, "{")
}

// options returns the subdirectives of from.
func (s *Source) options() block.Options {
	template := func(name string, to *string) block.Option {
		return block.Option{Usage: name + " <template>", Min: 1, Max: 1, Line: func(args []string) error {
			if args[0] == "" {
				return block.ErrEmptyText
			}
			*to = args[0]
			return source.CheckLeftOver(args[0])
		}}
	}
	file := func(name string, to *string) block.Option {
		return block.Option{Usage: name + " <path>", Min: 1, Max: 1, At: func(d *caddyfile.Dispenser, args []string) (err error) {
			if strings.Contains(args[0], "://") {
				return errors.New("it must be the path of a file")
			}
			*to, err = block.AbsPath(args[0], d.File())
			return err
		}}
	}
	return block.Options{
		"title": template("title", &s.Title), "title_file": file("title_file", &s.TitleFile),
		"body": template("body", &s.Body), "body_file": file("body_file", &s.BodyFile),
		"type": template("type", &s.Type), "tag": template("tag", &s.Tag), "format": template("format", &s.Format),
		"skip": template("skip", &s.Skip), "incident": template("incident", &s.Incident),
		"types": {Usage: "types <word>=<type>...", Min: 1, Max: math.MaxInt, Repeat: true, Line: func(args []string) error {
			for _, arg := range args {
				word, name, ok := strings.Cut(arg, "=")
				if !ok || word == "" {
					return errors.New("write types as word=type, such as broken=failure")
				}
				if s.Types == nil {
					s.Types = map[string]string{}
				}
				s.Types[word] = name
			}
			return nil
		}},
		"images":   {Usage: "images on|off", Min: 1, Max: 1, Line: block.On(&s.Images)},
		"mentions": {Usage: "mentions on|off", Min: 1, Max: 1, Line: block.OnOff(&s.Mentions)},
		"sign": {Usage: "sign <scheme> [<secret>]", Min: 1, Max: 2, Line: func(args []string) error {
			if !slices.Contains(source.Schemes(), args[0]) {
				return fmt.Errorf("there is no such signature scheme; use %s", strings.Join(source.Schemes(), ", "))
			}
			s.Sign = args[0]
			if needs := source.NeedsSecret(s.Sign); needs != (len(args) == 2) {
				if needs {
					return fmt.Errorf("the secret is missing; write sign %s {env.NAME}", s.Sign)
				}
				return fmt.Errorf("%s takes no secret", s.Sign)
			}
			if len(args) == 2 {
				s.Secret = args[1]
			}
			return placeholder.Check(s.Secret)
		}},
		"token": s.tokenOption(),
	}
}

// tokenOption returns the subdirective token.
func (s *Source) tokenOption() block.Option {
	return block.Option{Usage: "token <secret>", Min: 1, Max: 1, Line: func(args []string) error {
		if args[0] == "" {
			return block.ErrEmptyText
		}
		s.Token = args[0]
		return placeholder.Check(s.Token)
	}}
}
