package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
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

	// Times in which messages are held. Afterwards, a destination gets them as one
	// message. Default: none.
	Quiet []*Quiet `json:"quiet,omitempty"`

	// Collects messages, and sends them as one. Default: each is sent for itself.
	Digest *Digest `json:"digest,omitempty"`

	// How many messages a destination gets in a time. The rest is one message when the
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

// resolve returns the rule.
func (c *Escalate) resolve() *rules.Escalate {
	e := &rules.Escalate{Repeat: cmp.Or(c.Repeat, defaultRounds), Ack: cmp.Or(time.Duration(c.Ack), defaultAck), Scope: c.scope()}
	for _, d := range c.After {
		e.After = append(e.After, time.Duration(d))
	}
	return e
}

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

// empty reports whether there is no rule.
func (c *Rules) empty() bool {
	return len(c.Silence) == 0 && c.Dedupe == nil && c.Hold == nil &&
		c.Escalate == nil && len(c.Quiet) == 0 && c.Digest == nil && len(c.Rate) == 0
}

// names returns the names of the rules.
func (c *Rules) names() (names []string) {
	for _, x := range []struct {
		name string
		has  bool
	}{
		{"silence", len(c.Silence) > 0},
		{"dedupe", c.Dedupe != nil},
		{"hold", c.Hold != nil},
		{"escalate", c.Escalate != nil},
		{"quiet", len(c.Quiet) > 0},
		{"digest", c.Digest != nil},
		{"rate", len(c.Rate) > 0},
	} {
		if x.has {
			names = append(names, x.name)
		}
	}
	return names
}

// maxRules is the maximum number of rules of one kind.
const maxRules = 20

// resolve returns the rules, or nil if there are none.
func (c *Rules) resolve() (*rules.Rules, error) {
	if c.empty() {
		return nil, nil
	}
	if len(c.Quiet) > maxRules || len(c.Rate) > maxRules || len(c.Silence) > maxRules {
		return nil, fmt.Errorf("silence, quiet and rate may occur %d times each", maxRules)
	}
	windows, err := resolveSilences(c.Silence)
	if err != nil {
		return nil, err
	}
	r := &rules.Rules{Windows: windows}
	if d := c.Dedupe; d != nil {
		r.Dedupe = &rules.Dedupe{Window: time.Duration(d.Window), Scope: d.scope()}
	}
	if h := c.Hold; h != nil {
		r.Hold = &rules.Lasting{For: time.Duration(h.For), Scope: h.scope()}
	}
	if c.Escalate != nil {
		r.Escalate = c.Escalate.resolve()
	}
	for _, q := range c.Quiet {
		if q == nil {
			return nil, errors.New("quiet: it is null; write a window, or remove it")
		}
		w, err := rules.ParseWindow(arguments(q.Window, q.Days, q.Zone))
		if err != nil {
			return nil, errs.Prefix("quiet", err)
		}
		r.Quiet = append(r.Quiet, rules.Quiet{Window: w, Scope: q.scope()})
	}
	if d := c.Digest; d != nil {
		r.Digest = &rules.Digest{Every: time.Duration(d.Every), Scope: d.scope()}
		if d.At != "" || d.Every == 0 {
			moment, err := rules.ParseDigest(arguments(d.At, d.Days, d.Zone))
			if err != nil {
				return nil, errs.Prefix("digest", err)
			}
			r.Digest.Moment = moment
		} else if len(d.Days) > 0 || d.Zone != "" {
			return nil, errors.New("digest: days and a time zone need a time of the day, as in digest mon 08:00; add it, or remove them")
		}
	}
	for _, x := range c.Rate {
		if x == nil {
			return nil, errors.New("rate: it is null; write a count and a time, or remove it")
		}
		r.Rate = append(r.Rate, rules.Rate{Count: x.Count, Per: time.Duration(x.Per), Scope: x.scope()})
	}
	return r, r.Check()
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

// ruleName returns the name of a rule of a key in block.Info.Lines. key is "" for
// saved keys.
func ruleName(key, rule string) string {
	if key == "" {
		return "configs, " + rule
	}
	return block.KeyPrefix + key + ", " + rule
}

// errRulesWithoutQueue is returned for rules that cannot keep what they have to.
var errRulesWithoutQueue = errors.New("rules keep what they hold and what was sent in the queue, " +
	"and there is none; add queue to the global option notify, or remove the rule")

// errRulesUnqueued is returned for rules of a key without the queue.
var errRulesUnqueued = errors.New("rules keep what they hold and what was sent " +
	"in the queue, which the key does not use; remove queue off, or the rule")

// checkRules returns an error for rules without a queue.
func (s *Settings) checkRules(durable bool) error {
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		k := s.Keys[name]
		var err error
		switch {
		case k.Rules.empty():
			continue
		case !durable:
			err = errRulesWithoutQueue
		case k.Queue != nil && !*k.Queue:
			err = errRulesUnqueued
		default:
			continue
		}
		rule := k.Rules.names()[0]
		return s.Caddyfile.Locate(ruleName(name, rule), fmt.Errorf("key %s: %s: %w", name, rule, err))
	}
	if s.Configs != nil && !s.Configs.Rules.empty() && !durable {
		rule := s.Configs.Rules.names()[0]
		return s.Caddyfile.Locate(ruleName("", rule), fmt.Errorf("configs: %s: %w", rule, errRulesWithoutQueue))
	}
	return nil
}

// readRules adds the subdirectives for rules to the subdirectives of a block. key is "" for saved
// keys.
func readRules(c *Rules, known block.Options, key func() string, info func() *block.Info) {
	var more block.Options // what the block of this rule takes besides the options of all rules
	rule := func(name string, repeat bool, usage string, read func(args []string) (*RuleScope, error)) {
		known[name] = block.Option{Usage: usage, Min: 1, Max: 16, Repeat: repeat, Block: func(d *caddyfile.Dispenser, args []string) error {
			at := *d
			if setting := ruleName(key(), name); info().Line(setting) == "" {
				info().Record(setting, d)
			}
			more = nil
			s, err := read(args)
			switch {
			case err != nil:
			case s == nil:
				err = readSilenceBlock(d, more)
			default:
				err = s.read(d, name, more)
			}
			if err == nil {
				_, err = c.resolve()
				err = trimRule(err, name)
			} else if _, located := errors.AsType[*blockError](err); located {
				return errors.Unwrap(err)
			}
			if err != nil {
				return at.WrapErr(errs.Prefix(name, err))
			}
			return nil
		}}
	}
	rule("silence", true, "silence <from>-<to> [<days...>] [<zone>] [{ tag …; title …; reason …; tell }]",
		func(args []string) (_ *RuleScope, err error) {
			more, err = c.readSilence(args, key() == "")
			return nil, err
		})
	rule("dedupe", false, "dedupe <duration> [{ types …; tag … }]", func(args []string) (*RuleScope, error) {
		c.Dedupe = new(Dedupe)
		if len(args) > 1 {
			return nil, errors.New("it takes one duration, such as 10m")
		}
		return &c.Dedupe.RuleScope, block.Duration(&c.Dedupe.Window)(args)
	})
	rule("hold", false, "hold <duration> [{ types …; tag … }]", func(args []string) (*RuleScope, error) {
		c.Hold = new(Hold)
		if len(args) > 1 {
			return nil, errors.New("it takes one duration, such as 5m")
		}
		return &c.Hold.RuleScope, block.Duration(&c.Hold.For)(args)
	})
	rule("escalate", false, "escalate after <duration...> [{ repeat <n>; ack <duration>; types …; tag … }]",
		func(args []string) (*RuleScope, error) {
			e := new(Escalate)
			c.Escalate = e
			more = block.Options{
				"repeat": {Usage: "repeat <n>", Min: 1, Max: 1, Line: block.Number(&e.Repeat, 1, math.MaxInt32)},
				"ack":    {Usage: "ack <duration>", Min: 1, Max: 1, Line: block.Duration(&e.Ack)},
			}
			if args[0] != "after" || len(args) == 1 {
				return nil, errors.New("after is missing; write the times from each step to the next, as in escalate after 5m 15m")
			}
			for _, arg := range args[1:] {
				var d caddy.Duration
				if err := block.Duration(&d)([]string{arg}); err != nil {
					return nil, err
				}
				e.After = append(e.After, d)
			}
			return &e.RuleScope, nil
		})
	rule("quiet", true, "quiet <from>-<to> [<days...>] [<zone>] [{ types …; tag … }]", func(args []string) (*RuleScope, error) {
		w, err := rules.ParseWords(args)
		q := &Quiet{Window: strings.Join(w.Times, " "), Days: w.DayNames, Zone: w.ZoneName}
		c.Quiet = append(c.Quiet, q)
		if err == nil {
			_, err = rules.ParseWindow(args)
		}
		return &q.RuleScope, err
	})
	rule("digest", false, "digest <duration>|<time> [<days...>] [<zone>] [{ types …; tag … }]", func(args []string) (*RuleScope, error) {
		c.Digest = new(Digest)
		if d, err := caddy.ParseDuration(args[0]); err == nil && len(args) == 1 && !strings.Contains(args[0], ":") {
			c.Digest.Every = caddy.Duration(d)
			if d <= 0 {
				err = errors.New("it must be a duration above 0, such as 30s or 2m")
			}
			return &c.Digest.RuleScope, err
		}
		w, err := rules.ParseWords(args)
		c.Digest.At, c.Digest.Days, c.Digest.Zone = strings.Join(w.Times, " "), w.DayNames, w.ZoneName
		if err == nil {
			_, err = rules.ParseDigest(args)
		}
		return &c.Digest.RuleScope, err
	})
	rule("rate", true, "rate <n>/<duration> [{ types …; tag … }]", func(args []string) (*RuleScope, error) {
		if len(args) > 1 {
			return nil, errors.New("it takes one argument, such as 10/1m")
		}
		r, err := rules.ParseRate(args[0], caddy.ParseDuration)
		x := &Rate{Count: r.Count, Per: caddy.Duration(r.Per)}
		c.Rate = append(c.Rate, x)
		return &x.RuleScope, err
	})
}

// trimRule removes the name of the rule at the beginning of an error.
func trimRule(err error, name string) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), name+": "))
}

// blockError is an error that has its position.
type blockError struct{ err error }

func (e *blockError) Error() string { return e.err.Error() }
func (e *blockError) Unwrap() error { return e.err }

// read reads the block of a rule, if there is one. more are options of this rule.
func (s *RuleScope) read(d *caddyfile.Dispenser, name string, more block.Options) error {
	options := block.Options{
		"types": {Usage: "types <type...>", Min: 1, Max: math.MaxInt, Line: func(types []string) error {
			s.Types = types
			for _, t := range types {
				if !slices.Contains(rules.Types, notifier.Type(t)) {
					return fmt.Errorf("%s is no type; write info, success, warning or failure", cmp.Or(strings.TrimSpace(block.Quote(t)), "it"))
				}
			}
			return nil
		}},
		"tag": {Usage: "tag <tag>", Min: 1, Max: 1, Line: func(args []string) error {
			s.Tag = args[0]
			return site.CheckTag(args[0])
		}},
	}
	maps.Copy(options, more)
	if err := block.ReadOptional(d, name, options); err != nil {
		return &blockError{err}
	}
	return nil
}
