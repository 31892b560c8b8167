package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Rules are the rules of a key over time. They apply to each destination of a message
// for itself, in the order silence, dedupe, hold, escalate, quiet, digest, rate, and need the
// queue. URLs with numbers in their tags have rules other than silence only with escalate.
type Rules struct {
	// Times in which nothing is told that is over before their end. Default: none.
	Silence []*Silence `json:"silence,omitempty"`

	// Suppresses a message that a destination has already. Default: nothing is
	// suppressed.
	Dedupe *Dedupe `json:"dedupe,omitempty"`

	// Tells a problem only if it lasts. Default: it is told at once.
	Hold *Hold `json:"hold,omitempty"`

	// Tells the numbers of tags one after the other about a failure, until somebody
	// acknowledges it. Default: numbers are tried in their order until a destination has
	// the message.
	Escalate *Escalate `json:"escalate,omitempty"`

	// Times in which messages are held; afterwards, a destination gets them as one
	// message. Default: none.
	Quiet []*Quiet `json:"quiet,omitempty"`

	// Collects messages, and sends them as one. Default: each is sent for itself.
	Digest *Digest `json:"digest,omitempty"`

	// How many messages a destination gets in a time; the rest is one message when the
	// time ends. Default: no limit.
	Rate []*Rate `json:"rate,omitempty"`
}

// RuleScope limits a rule.
type RuleScope struct {
	// The types of the messages: `info`, `success`, `warning` and `failure`. Default:
	// all; for `quiet`, and for a `digest` at a time of the day, all but `failure`.
	Types []string `json:"types,omitempty"`

	// A tag of URLs. The rule applies to those that have it. Default: every URL.
	Tag string `json:"tag,omitempty"`
}

// Dedupe suppresses a message that tells a destination the state of an incident that
// it was told already or, without an incident, has the same type, title and text.
type Dedupe struct {
	// How long after the message that was sent. It does not begin anew with those that
	// are suppressed. A duration such as `"10m"`, or a number of nanoseconds, from 1s to
	// 30d. Required.
	Window caddy.Duration `json:"window,omitempty"`

	RuleScope
}

// Hold holds the message that opens an incident. If the incident is resolved before the time
// is over, neither is told; otherwise its present state is told then, and steps of
// `escalate` begin. An incident that opens a third time within three times of the rule is
// told at once. It needs messages that name their incident.
type Hold struct {
	// How long a problem has to last. A duration such as `"5m"`, or a number of nanoseconds,
	// from 1s to 24h. Required.
	For caddy.Duration `json:"for,omitempty"`

	// Limits the rule. The types are `failure` and `warning`. Default: both.
	RuleScope
}

// Escalate makes the numbers of tags steps: those with the number 1 are told at once, those
// with 2 later, and so on, until somebody acknowledges the incident on its page, or it is
// resolved. URLs without a number are told at once and of the resolution. It needs
// `public_url`, because its messages have a link to that page.
type Escalate struct {
	// The times from each step to the next. The last one is also the time from the last step back
	// to the first one. With one step, it is the time until it is told again. Durations such as
	// `"5m"`, or numbers of nanoseconds, from 1s to 30d. Required.
	After []caddy.Duration `json:"after,omitempty"`

	// How many rounds there are. Default: 3.
	Repeat int `json:"repeat,omitempty"`

	// How long an acknowledgement lasts. If the incident is still open then, the steps begin
	// again. A duration such as `"4h"`, or a number of nanoseconds, from 1s to 30d. Default:
	// 24h.
	Ack caddy.Duration `json:"ack,omitempty"`

	// Limits the rule. The types are `failure` and `warning`. Default: `failure`.
	RuleScope
}

// The defaults of [Escalate].
const (
	defaultRounds = 3
	defaultAck    = 24 * time.Hour
)

// Quiet holds messages in a part of the day, by the clock on the wall. The resolution
// of a failure that was sent is sent, too.
type Quiet struct {
	// From when to when. If the end is not after the beginning, it is on the next day.
	// Example: `22:00-07:00`. Required.
	Window string `json:"window,omitempty"`

	// The days on which the window begins. Example: `["mon-fri"]`. Default: every day.
	Days []string `json:"days,omitempty"`

	// The time zone. Example: `Europe/Berlin`. Default: the server's time zone.
	Zone string `json:"zone,omitempty"`

	RuleScope
}

// Digest collects messages. Exactly one of `every` and `at` is set.
type Digest struct {
	// How long after the first message they are sent. A duration such as `"30s"`, or a
	// number of nanoseconds, from 1s to 30d.
	Every caddy.Duration `json:"every,omitempty"`

	// The time of the day at which they are sent. Example: `08:00`.
	At string `json:"at,omitempty"`

	// The days on which they are sent, with `at`. Example: `["mon"]`. Default: every
	// day.
	Days []string `json:"days,omitempty"`

	// The time zone of `at`. Example: `Europe/Berlin`. Default: the server's time zone.
	Zone string `json:"zone,omitempty"`

	RuleScope
}

// Rate limits messages. Failures and the openings of incidents have a budget of their own of
// the same size.
type Rate struct {
	// The number of messages. Required.
	Count int `json:"count,omitempty"`

	// The time in which a destination gets no more than that. It begins with the first
	// of them. A duration such as `"1m"`, or a number of nanoseconds, from 1s to 30d.
	// Required.
	Per caddy.Duration `json:"per,omitempty"`

	RuleScope
}

// maxRules is the maximum number of rules of one kind.
const maxRules = 20

var errManyRules = fmt.Errorf("it may occur %d times", maxRules)

// rule returns the description of a rule, which keys and configs have. block has the lines of its
// block in addition to the lines of its scope.
func rule(o keyOption, has func(c *Rules) bool, to func(c *Rules, r *rules.Rules) error) keyOption {
	o.pages, o.configs, o.located = cmp.Or(o.pages, "routing.md"), true, true
	o.keeps = "rules keep what they hold and what was sent in the queue"
	o.has = func(c *Key) bool { return has(&c.Rules) }
	o.to = func(c *Key, k *site.KeyOptions) error {
		if k.Rules == nil {
			k.Rules = new(rules.Rules)
		}
		return to(&c.Rules, k.Rules)
	}
	return o
}

// scopeLines are the lines of RuleScope in the block of a rule.
var scopeLines = []string{"types <type...>", "tag <tag>"}

// ruleOptions are the rules, in the order in which they apply.
var ruleOptions = []keyOption{
	rule(keyOption{
		name: "silence", args: "<from>-<to> [<days...>] [<zone>]", many: true, repeat: true, pages: "silences.md",
		block: []string{"tag <tag>|all", "title <text>", "reason <text>", "tell"},
		read:  (*keyBlock).readSilence, inner: (*keyBlock).silenceLines,
	}, func(c *Rules) bool { return len(c.Silence) > 0 }, (*Rules).toSilences),
	rule(keyOption{
		name: "dedupe", args: "<duration>", block: scopeLines,
		read: func(k *keyBlock, _ *caddyfile.Dispenser, args []string) error {
			k.Dedupe = new(Dedupe)
			return block.Duration(&k.Dedupe.Window)(args)
		},
		inner: func(k *keyBlock) block.Options { return k.Dedupe.lines() },
	}, func(c *Rules) bool { return c.Dedupe != nil }, func(c *Rules, r *rules.Rules) error {
		r.Dedupe = &rules.Dedupe{Window: time.Duration(c.Dedupe.Window), Scope: c.Dedupe.scope()}
		return nil
	}),
	rule(keyOption{
		name: "hold", args: "<duration>", block: scopeLines,
		read: func(k *keyBlock, _ *caddyfile.Dispenser, args []string) error {
			k.Hold = new(Hold)
			return block.Duration(&k.Hold.For)(args)
		},
		inner: func(k *keyBlock) block.Options { return k.Hold.lines() },
	}, func(c *Rules) bool { return c.Hold != nil }, func(c *Rules, r *rules.Rules) error {
		r.Hold = &rules.Lasting{For: time.Duration(c.Hold.For), Scope: c.Hold.scope()}
		return nil
	}),
	rule(keyOption{
		name: "escalate", args: "after <duration...>", block: slices.Concat([]string{"repeat <n>", "ack <duration>"}, scopeLines),
		many: true, pages: "escalate.md", read: (*keyBlock).readEscalate,
		inner: func(k *keyBlock) block.Options {
			known := k.Escalate.lines()
			known["repeat"] = block.Option{Min: 1, Max: 1, Line: block.Number(&k.Escalate.Repeat, 1, math.MaxInt32)}
			known["ack"] = block.Option{Min: 1, Max: 1, Line: block.Duration(&k.Escalate.Ack)}
			return known
		},
	}, func(c *Rules) bool { return c.Escalate != nil }, func(c *Rules, r *rules.Rules) error {
		e := c.Escalate
		r.Escalate = &rules.Escalate{Repeat: cmp.Or(e.Repeat, defaultRounds), Ack: cmp.Or(time.Duration(e.Ack), defaultAck), Scope: e.scope()}
		for _, d := range e.After {
			r.Escalate.After = append(r.Escalate.After, time.Duration(d))
		}
		return nil
	}),
	rule(keyOption{
		name: "quiet", args: "<from>-<to> [<days...>] [<zone>]", block: scopeLines, many: true, repeat: true,
		read: func(k *keyBlock, _ *caddyfile.Dispenser, args []string) error {
			w, err := rules.ParseWords(args)
			k.Quiet = append(k.Quiet, &Quiet{Window: strings.Join(w.Times, " "), Days: w.DayNames, Zone: w.ZoneName})
			if err == nil {
				_, err = rules.ParseWindow(args)
			}
			return err
		},
		inner: func(k *keyBlock) block.Options { return k.Quiet[len(k.Quiet)-1].lines() },
	}, func(c *Rules) bool { return len(c.Quiet) > 0 }, (*Rules).toQuiet),
	rule(keyOption{
		name: "digest", args: "<duration>|<time> [<days...>] [<zone>]", block: scopeLines, many: true,
		read:  (*keyBlock).readDigest,
		inner: func(k *keyBlock) block.Options { return k.Digest.lines() },
	}, func(c *Rules) bool { return c.Digest != nil }, (*Rules).toDigest),
	rule(keyOption{
		name: "rate", args: "<n>/<duration>", block: scopeLines, repeat: true,
		read: func(k *keyBlock, _ *caddyfile.Dispenser, args []string) error {
			r, err := rules.ParseRate(args[0], caddy.ParseDuration)
			k.Rate = append(k.Rate, &Rate{Count: r.Count, Per: caddy.Duration(r.Per)})
			return err
		},
		inner: func(k *keyBlock) block.Options { return k.Rate[len(k.Rate)-1].lines() },
	}, func(c *Rules) bool { return len(c.Rate) > 0 }, (*Rules).toRates),
}

// readEscalate reads the arguments of escalate.
func (k *keyBlock) readEscalate(_ *caddyfile.Dispenser, args []string) error {
	k.Escalate = new(Escalate)
	if args[0] != "after" || len(args) == 1 {
		return errors.New("after is missing; write the times from each step to the next, as in escalate after 5m 15m")
	}
	for _, arg := range args[1:] {
		var d caddy.Duration
		if err := block.Duration(&d)([]string{arg}); err != nil {
			return err
		}
		k.Escalate.After = append(k.Escalate.After, d)
	}
	return nil
}

// readDigest reads the arguments of digest.
func (k *keyBlock) readDigest(_ *caddyfile.Dispenser, args []string) error {
	k.Digest = new(Digest)
	if _, err := caddy.ParseDuration(args[0]); err == nil && len(args) == 1 && !strings.Contains(args[0], ":") {
		return block.Duration(&k.Digest.Every)(args)
	}
	w, err := rules.ParseWords(args)
	k.Digest.At, k.Digest.Days, k.Digest.Zone = strings.Join(w.Times, " "), w.DayNames, w.ZoneName
	if err == nil {
		_, err = rules.ParseDigest(args)
	}
	return err
}

// lines returns what reads the lines of the scope.
func (s *RuleScope) lines() block.Options {
	return block.Options{
		"types": {Min: 1, Max: math.MaxInt, Line: func(types []string) error {
			s.Types = types
			for _, t := range types {
				if !slices.Contains(rules.Types, notifier.Type(t)) {
					return fmt.Errorf("%s is no type; write info, success, warning or failure", cmp.Or(strings.TrimSpace(block.Quote(t)), "it"))
				}
			}
			return nil
		}},
		"tag": {Min: 1, Max: 1, Line: block.Text(&s.Tag, site.CheckTag)},
	}
}

// toQuiet hands over quiet.
func (c *Rules) toQuiet(r *rules.Rules) error {
	if len(c.Quiet) > maxRules {
		return errManyRules
	}
	for _, q := range c.Quiet {
		if q == nil {
			return errors.New("it is null; write a window, or remove it")
		}
		w, err := rules.ParseWindow(arguments(q.Window, q.Days, q.Zone))
		if err != nil {
			return err
		}
		r.Quiet = append(r.Quiet, rules.Quiet{Window: w, Scope: q.scope()})
	}
	return nil
}

// toDigest hands over digest.
func (c *Rules) toDigest(r *rules.Rules) error {
	d := c.Digest
	r.Digest = &rules.Digest{Every: time.Duration(d.Every), Scope: d.scope()}
	if d.At != "" || d.Every == 0 {
		moment, err := rules.ParseDigest(arguments(d.At, d.Days, d.Zone))
		r.Digest.Moment = moment
		return err
	}
	if len(d.Days) > 0 || d.Zone != "" {
		return errors.New("days and a time zone need a time of the day, as in digest mon 08:00; add it, or remove them")
	}
	return nil
}

// toRates hands over rate.
func (c *Rules) toRates(r *rules.Rules) error {
	if len(c.Rate) > maxRules {
		return errManyRules
	}
	for _, x := range c.Rate {
		if x == nil {
			return errors.New("it is null; write a count and a time, or remove it")
		}
		r.Rate = append(r.Rate, rules.Rate{Count: x.Count, Per: time.Duration(x.Per), Scope: x.scope()})
	}
	return nil
}

// arguments returns the arguments of a rule as the Caddyfile has them.
func arguments(at string, days []string, zone string) []string {
	args := slices.DeleteFunc([]string{at, zone}, func(s string) bool { return s == "" })
	return append(args, days...)
}

func (s *RuleScope) scope() rules.Scope {
	out := rules.Scope{Tag: s.Tag}
	for _, t := range s.Types {
		out.Types = append(out.Types, notifier.Type(t))
	}
	return out
}
