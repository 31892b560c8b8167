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

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// keyOption describes an option of a key. The comment of its field of [Key] says what the option
// does, and its default. The Caddyfile's reader, the errors that list the options, the checks of
// both formats, the syntax in the comment of [Settings.UnmarshalCaddyfile], and the row in
// docs/caddyfile.md all come from these two.
type keyOption struct {
	name    string
	args    string   // its arguments in the syntax, such as "<duration>"
	block   []string // the lines in its block; nil if it has none
	repeat  bool     // it may occur several times
	configs bool     // configs has it, too, for every saved key
	pages   string   // the pages in docs/ about it
	located bool     // its line is recorded, for errors found after the Caddyfile is read

	// read reads its arguments: one or, with many, any number but none.
	read func(k *keyBlock, d *caddyfile.Dispenser, args []string) error
	many bool

	// inner returns the options in the block of the option that was read last.
	inner func(k *keyBlock) block.Options

	// has reports whether the key has it. Options without has are always handed over.
	has func(c *Key) bool

	// to checks it and hands it to the gateway. The errors of both formats come from here. Nil
	// if the option needs more than the key.
	to func(c *Key, o *site.KeyOptions) error

	// keeps is the reason why the option has no effect without the queue, for errors.
	keeps string
}

// keyOptions are all options of a key.
var keyOptions = slices.Concat([]keyOption{
	{
		name: "url", args: "<url> [<tags...>]", many: true, repeat: true, pages: "services.md tags.md",
		read: (*keyBlock).readURL,
	},
	{
		name: "import_apprise", args: "<file|url...>", many: true, repeat: true, pages: "apprise.md#import-your-configuration-files",
		read: (*keyBlock).readImports,
	},
	{
		name: "variables", args: "<name>=<value>...", many: true, repeat: true, configs: true,
		pages: "apprise.md#import-your-configuration-files",
		read:  line(func(k *keyBlock) func([]string) error { return readVariables(&k.Variables) }),
		has:   func(c *Key) bool { return len(c.Variables) > 0 },
	},
	{
		name: "default_tag", args: "<expression>|untagged", configs: true, pages: "tags.md#without-a-tag",
		read: func(k *keyBlock, d *caddyfile.Dispenser, args []string) error {
			k.DefaultTag, k.tagAt = args[0], *d
			if args[0] == "" {
				return site.ErrEmptyTag
			}
			return nil
		},
		has: func(c *Key) bool { return c.DefaultTag != "" },
		to: func(c *Key, o *site.KeyOptions) error {
			o.DefaultTag = c.DefaultTag
			_, err := site.ParseDefaultTag(c.DefaultTag)
			return err
		},
	},
	{
		name: "fallback", args: "<key>", pages: "retries.md#deliveries-that-were-given-up", located: true,
		read: line(func(k *keyBlock) func([]string) error { return block.Text(&k.Fallback, site.CheckKeyName) }),
		to:   func(c *Key, o *site.KeyOptions) error { o.Fallback = c.Fallback; return nil },
	},
	{
		name: "queue", args: "on|off", pages: "queue.md#settings", located: true,
		read: line(func(k *keyBlock) func([]string) error { return block.OnOff(&k.Queue) }),
		to:   func(c *Key, o *site.KeyOptions) error { o.Unqueued = c.unqueued(); return nil },
	},
	{
		name: "token", args: "<secret...>", many: true, repeat: true, pages: "tokens.md",
		read: line(func(k *keyBlock) func([]string) error { return block.List(&k.Tokens, checkSecrets) }),
		to:   func(c *Key, o *site.KeyOptions) error { o.Tokens = c.Tokens; return nil },
	},
	{
		name: "inbox", args: "<duration>", configs: true, pages: "inbox.md", located: true,
		read: func(k *keyBlock, _ *caddyfile.Dispenser, args []string) error {
			_ = block.Duration(&k.Inbox)(args) // what is no duration has the error of one that is too short
			return site.CheckInbox(max(time.Duration(k.Inbox), 1))
		},
		has: func(c *Key) bool { return c.Inbox != 0 },
		to: func(c *Key, o *site.KeyOptions) error {
			o.Inbox = time.Duration(c.Inbox)
			return site.CheckInbox(o.Inbox)
		},
		keeps: "messages are kept in the queue",
	},
	{
		name: "reader", args: "<secret...>", many: true, repeat: true, pages: "inbox.md",
		read: line(func(k *keyBlock) func([]string) error { return block.List(&k.Readers, checkSecrets) }),
		to:   func(c *Key, o *site.KeyOptions) error { o.Readers = c.Readers; return nil },
	},
}, ruleOptions, []keyOption{
	{
		name: "expect", args: expectArgs, block: []string{"tag <expression>"}, many: true, repeat: true, pages: "watchdog.md",
		read: (*keyBlock).readExpect, inner: (*keyBlock).expectTag,
		has:   func(c *Key) bool { return len(c.Expect) > 0 },
		to:    (*Key).toExpects,
		keeps: "beats are kept in the queue",
	},
	{
		name: "accept", args: "direct|smtp|<source...>", many: true, repeat: true, pages: "sources.md",
		read: (*keyBlock).readAccept,
		to:   func(c *Key, o *site.KeyOptions) error { o.Accept = c.Accept; return nil },
	},
})

// line is the read of an option whose reader needs no position.
func line(reader func(k *keyBlock) func([]string) error) func(*keyBlock, *caddyfile.Dispenser, []string) error {
	return func(k *keyBlock, _ *caddyfile.Dispenser, args []string) error { return reader(k)(args) }
}

// usage returns the option as errors show it.
func (o *keyOption) usage() string {
	text := o.name + " " + o.args
	if o.block != nil {
		text += " [{ " + strings.Join(o.block, "; ") + " }]"
	}
	return text
}

// optionName returns the name of an option of a key, or for "" of configs, in
// block.Info.
func optionName(key, option string) string {
	if key == "" {
		return "configs, " + option
	}
	return block.KeyPrefix + key + ", " + option
}

// optionError returns an error about an option of a key, or for "" of configs, with its
// position.
func (s *Settings) optionError(key, option string, err error) error {
	prefix := "configs"
	if key != "" {
		prefix = block.KeyPrefix + key
	}
	return s.Caddyfile.Locate(optionName(key, option), errs.Prefix(prefix, errs.Prefix(option, err)))
}

// optionError is an error about one line of an option.
type optionError struct {
	option string // its name, with more if a key has several
	err    error
}

func (e *optionError) Error() string { return e.option + ": " + e.err.Error() }
func (e *optionError) Unwrap() error { return e.err }

// to checks the options of the key, and hands them to the gateway. The error is an
// [*optionError].
func (c *Key) to(o *site.KeyOptions) error {
	for i := range keyOptions {
		x := &keyOptions[i]
		if x.to == nil || x.has != nil && !x.has(c) {
			continue
		}
		if err := x.to(c, o); err != nil {
			if _, named := errors.AsType[*optionError](err); named {
				return err
			}
			return &optionError{x.name, err}
		}
	}
	if o.Rules == nil {
		return nil
	}
	if err := o.Rules.Check(); err != nil {
		rule, text, _ := strings.Cut(err.Error(), ": ")
		return &optionError{rule, errors.New(text)}
	}
	return nil
}

// unqueued reports whether the messages of the key do not use the queue.
func (c *Key) unqueued() bool { return c.Queue != nil && !*c.Queue }

// errNoQueue is returned for queue in a key if there is no queue.
var errNoQueue = errors.New("it has no effect, because there is no queue; add queue to the global option notify, or remove this line")

// checkQueued returns an error for an option that needs the queue if there is none, or if the
// key does not use it. durable reports whether there is one.
func (s *Settings) checkQueued(durable bool) error {
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		if s.Keys[name].Queue != nil && !durable {
			return s.optionError(name, "queue", errNoQueue)
		}
		if err := s.checkKept(name, s.Keys[name], durable); err != nil {
			return err
		}
	}
	if s.Configs != nil {
		return s.checkKept("", s.Configs.key(), durable)
	}
	return nil
}

// checkKept makes checkQueued for a key or, with the name "", for the options of configs.
func (s *Settings) checkKept(name string, c *Key, durable bool) error {
	if durable && !c.unqueued() {
		return nil
	}
	for i := range keyOptions {
		o := &keyOptions[i]
		if o.keeps == "" || !o.has(c) {
			continue
		}
		line, err := o.name, errors.New(o.keeps+", which the key does not use; remove queue off, or this line")
		if !durable {
			err = errors.New(o.keeps + ", and there is none; add queue to the global option notify, or remove the line")
		}
		if o.name == "expect" {
			line += " " + c.Expect[0].Name
		}
		return s.optionError(name, line, err)
	}
	return nil
}

// keyBlock is the block of a key or of configs, which has some of the options for every saved key.
type keyBlock struct {
	Key
	name     string // "" for configs
	settings *settingsBlock
	file     string              // where the block begins
	tagAt    caddyfile.Dispenser // the position of default_tag
	checked  site.KeyOptions     // of the lines read so far
}

// options returns the options of the block. With configs, it returns only the options that configs
// has, too.
func (k *keyBlock) options(configs bool) block.Options {
	known := block.Options{}
	for i := range keyOptions {
		if o := &keyOptions[i]; o.configs || !configs {
			known[o.name] = k.option(o)
		}
	}
	return known
}

// option returns the option as a block reads it: each line is recorded, read and checked.
func (k *keyBlock) option(o *keyOption) block.Option {
	out := block.Option{Usage: o.usage(), Min: 1, Max: 1, Repeat: o.repeat}
	if o.many {
		out.Max = math.MaxInt
	}
	if o.block == nil {
		out.At = func(d *caddyfile.Dispenser, args []string) error {
			if err := o.read(k, d, args); err != nil {
				return err
			}
			return k.check(o, d)
		}
		return out
	}
	out.Block = func(d *caddyfile.Dispenser, args []string) error {
		at := *d
		if err := o.read(k, d, args); err != nil {
			return at.WrapErr(errs.Prefix(o.name, err))
		}
		known := o.inner(k)
		for _, usage := range o.block {
			name, _, _ := strings.Cut(usage, " ")
			x := known[name]
			x.Usage = usage
			known[name] = x
		}
		if err := block.ReadOptional(d, o.name, known); err != nil {
			return err
		}
		if err := k.check(o, &at); err != nil {
			return at.WrapErr(errs.Prefix(o.name, err))
		}
		return nil
	}
	return out
}

// check records the line of an option that was read, and checks what the key has so far.
func (k *keyBlock) check(o *keyOption, at *caddyfile.Dispenser) error {
	info := k.settings.to.Caddyfile
	if name := optionName(k.name, o.name); o.located && info.Line(name) == "" {
		info.Record(name, at)
	}
	k.checked = site.KeyOptions{}
	err := k.to(&k.checked)
	if e, ok := errors.AsType[*optionError](err); ok && e.option == o.name {
		return e.err
	}
	return err
}

// readURL reads url.
func (k *keyBlock) readURL(d *caddyfile.Dispenser, args []string) error {
	for _, tag := range args[1:] {
		if strings.Contains(tag, "://") {
			return placeholder.ErrSeveralURLs
		}
		if err := site.CheckTag(tag); err != nil {
			return err
		}
	}
	k.settings.urls = append(k.settings.urls, urlToken{args[0], *d})
	k.settings.to.Caddyfile.RecordURL(k.name, k.file, len(k.URLs), d)
	dir, err := urlDir(args[0], d.File())
	if err != nil {
		return err
	}
	k.URLs = append(k.URLs, KeyURL{URL: args[0], Dir: dir, Tags: args[1:]})
	return nil
}

// readImports reads import_apprise.
func (k *keyBlock) readImports(d *caddyfile.Dispenser, locations []string) error {
	for _, location := range locations {
		path, err := block.AbsPath(location, d.File())
		if err != nil {
			return err
		}
		k.settings.to.Caddyfile.Record(importName(k.name, len(k.ImportApprise)), d)
		k.ImportApprise = append(k.ImportApprise, path)
	}
	return nil
}

// readAccept reads accept.
func (k *keyBlock) readAccept(d *caddyfile.Dispenser, names []string) error {
	for _, name := range names {
		k.settings.to.Caddyfile.Record(optionName(k.name, "accept "+name), d)
		if name != site.SourceDirect && name != site.SourceSMTP {
			if err := checkSourceName(name); err != nil {
				return err
			}
		}
	}
	k.Accept = append(k.Accept, names...)
	return nil
}

// readKey reads a block key.
func (b *settingsBlock) readKey(d *caddyfile.Dispenser, args []string) error {
	name := args[0]
	if err := site.CheckKeyName(name); err != nil {
		return d.WrapErr(err)
	}
	if b.to.Keys[name] != nil {
		return d.Errf("the key %s occurs twice; write all its URLs into one block", name)
	}
	start := *d
	k := &b.key
	*k = keyBlock{name: name, settings: b, file: d.File(), tagAt: *d}
	if b.keyOptions == nil {
		b.keyOptions = k.options(false)
	}
	b.to.Caddyfile.RecordKey(name, d)
	err := block.Read(d, "key", b.keyOptions)
	if _, empty := errors.AsType[*block.EmptyError](err); err != nil && !empty {
		return err
	}
	if err == nil && len(k.URLs)+len(k.ImportApprise) == 0 && k.Inbox == 0 {
		err = start.Errf("the key %s has no URL; add url <url> [<tags...>], "+
			"or push to the global option notify, so that phones can subscribe to it", name)
	}
	b.needsPush = cmp.Or(b.needsPush, err)
	if err := k.checkQuotes(); err != nil {
		return err
	}
	if err := k.checkDefaultTag(); err != nil {
		if err = k.tagAt.WrapErr(err); !errors.Is(err, site.ErrDefaultTagUnmatched) {
			return err
		}
		b.needsPush = cmp.Or(b.needsPush, err)
	}
	if b.to.Keys == nil {
		b.to.Keys = map[string]*Key{}
	}
	key := k.Key
	b.to.Keys[name] = &key
	return nil
}

// checkQuotes returns an error if quotes around a URL seem to include its tags.
func (k *keyBlock) checkQuotes() error {
	var known []string
	for _, u := range k.URLs {
		known = append(known, u.Tags...)
	}
	for _, u := range k.settings.urls[len(k.settings.urls)-len(k.URLs):] {
		if endsWithTags(u.url, known) {
			return u.at.Err(`the URL has a space in it and then what looks like a tag; end the quotes ` +
				`after the URL, as in url "<url>" <tag>, or write %20 for a space that belongs to the URL`)
		}
	}
	return nil
}

// endsWithTags reports whether each word after the first space of a URL looks like a tag.
// Spaces are common in a query, as in ?from=Disk alarm, so the words there must be known
// tags. Numbers may be telephone numbers.
func endsWithTags(url string, known []string) bool {
	url = strings.TrimSpace(url)
	i := strings.IndexAny(url, " \t")
	if i < 0 {
		return false
	}
	inQuery := strings.Contains(url[:i], "?")
	return !slices.ContainsFunc(strings.Fields(url[i:]), func(word string) bool {
		return site.CheckTag(word) != nil || strings.Trim(word, "0123456789") == "" || inQuery && !slices.Contains(known, word)
	})
}

// readVariables reads variables, <name>=<value>.
func readVariables(to *map[string]string) func([]string) error {
	return func(args []string) error {
		if *to == nil {
			*to = map[string]string{}
		}
		for _, arg := range args {
			name, value, ok := strings.Cut(arg, "=")
			if !ok {
				return errors.New("a variable is <name>=<value>, as in TOKEN={env.TOKEN}")
			}
			if err := placeholder.CheckVariable(name, value); err != nil {
				return err
			}
			if _, twice := (*to)[name]; twice {
				return fmt.Errorf("the variable %s occurs twice; remove one", name)
			}
			(*to)[name] = value
		}
		return nil
	}
}

// checkDefaultTag returns an error if no URL has the default tag. If the key
// imports files, their URLs may have it.
func (k *keyBlock) checkDefaultTag() error {
	if k.DefaultTag == "" {
		return nil
	}
	targets := make([]notifier.Target, len(k.URLs))
	for i, u := range k.URLs {
		targets[i].Tags = u.Tags
	}
	chosen, err := site.ParseDefaultTag(k.DefaultTag)
	switch {
	case err != nil:
		return fmt.Errorf("default_tag: %w", err)
	case len(k.ImportApprise) == 0 && !chosen.Untagged && len(chosen.Choose(targets)) == 0:
		return site.ErrDefaultTagUnmatched
	}
	return nil
}
