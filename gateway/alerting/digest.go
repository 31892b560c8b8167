package alerting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// The bounds of a digest.
const (
	digestLines    = 50
	digestLineText = 200 // bytes of a line
	digestFiled    = 10  // messages whose files it has
)

// digestLine is a line of a digest.
type digestLine struct {
	time    time.Time // of the first message
	typ     notifier.Type
	text    string
	subject string
	state   notifier.IncidentState
	opened  time.Time // the problem that is resolved, if it is in this digest
	count   int       // of the messages in it
	repeats int       // that were suppressed
}

// digest is the message about the messages of a group.
type digest struct {
	message  *notifier.Message
	policy   *egress.Policy // the strictest of the messages
	lines    []digestLine
	filed    int      // messages that have files
	releases []func() // of files that the digest has
}

// newDigest returns the digest of a group. The caller calls release when it is stored.
func (p *release) newDigest(ctx context.Context) (*digest, error) {
	g := &digest{
		message: &notifier.Message{Type: notifier.Info, Format: markup.Text},
		policy:  p.target.Target.Policy(),
	}
	for _, x := range p.group.Items {
		if err := g.add(ctx, p, x); err != nil {
			g.release()
			return nil, err
		}
	}
	rankDigest(g.lines)
	g.write(p)
	return g, nil
}

// release releases the files of the messages.
func (g *digest) release() {
	for _, f := range g.releases {
		f()
	}
}

// add adds the message of an item.
func (g *digest) add(ctx context.Context, p *release, x rules.Item) error {
	stored, release, err := p.lanes.outbox.Queue.Load(ctx, x.Job.Message)
	if _, damaged := errors.AsType[*queue.DamagedError](err); damaged || errors.Is(err, queue.ErrNotFound) {
		g.addUnread(x, "(the message is damaged)")
		return nil
	}
	if err != nil {
		return err
	}
	if len(stored.Files) > 0 && g.filed < digestFiled {
		g.releases = append(g.releases, release)
	} else {
		release()
	}
	var text queued.Text
	if err := text.Decode(stored.Body); err != nil {
		g.addUnread(x, "(the message cannot be read)")
		return nil
	}
	one, err := text.Message(stored)
	if err != nil {
		return err
	}
	then, err := outbox.PolicyThen(&text, p.target.Target.Destination)
	if err != nil {
		return err
	}
	g.policy = egress.Strictest(g.policy, p.conf.PolicyOf(text.Site, then, p.target.Target.Destination))
	g.addMessage(x, one, p.jobs[x.Job].ruled.Repeats)
	return nil
}

// addUnread adds a line for a message that nobody can read. text says so.
func (g *digest) addUnread(x rules.Item, text string) {
	g.lines = append(g.lines, digestLine{time: x.Time, typ: x.Type, text: text, count: 1})
}

// addMessage adds a message, and its files as long as there is room for them.
func (g *digest) addMessage(x rules.Item, one *notifier.Message, repeats int) {
	m := g.message
	if len(one.Attachments) > 0 {
		if g.filed < digestFiled {
			m.Attachments = append(m.Attachments, one.Attachments...)
		}
		g.filed++
	}
	m.Foreign = m.Foreign || one.Foreign
	m.Hops = max(m.Hops, one.Hops)
	g.lines = addDigestLine(g.lines, x, digestText(one), repeats)
}

// write writes the type, the title and the text of the digest.
func (g *digest) write(p *release) {
	counts := p.group.More.Counts
	for _, l := range g.lines {
		counts[max(slices.Index(rules.Types, l.typ), 0)]++
	}
	for i, typ := range rules.Types {
		if counts[i] > 0 {
			g.message.Type = typ
		}
	}
	g.message.Title = digestTitle(p.state.Key, counts)
	g.message.Body = digestBody(g.lines, p.group.More.Counts, p.now, digestZone(p.target.Rules))
}

// addDigestLine adds the line of a message. The states of one incident are one line.
func addDigestLine(lines []digestLine, x rules.Item, text string, repeats int) []digestLine {
	if x.Subject != "" && x.State != "" {
		for i := range lines {
			l := &lines[i]
			if l.subject != x.Subject {
				continue
			}
			if x.State == notifier.Resolved && l.state == notifier.Open {
				l.opened = l.time
			} else if x.State == notifier.Open {
				l.opened = time.Time{}
			}
			l.time, l.typ, l.text, l.state = x.Time, x.Type, text, x.State
			l.count++
			l.repeats += repeats
			return lines
		}
	}
	return append(lines, digestLine{time: x.Time, typ: x.Type, text: text, subject: x.Subject, state: x.State, count: 1, repeats: repeats})
}

// rankDigest puts failures first and warnings next, so that neither the limit of lines nor
// a service that cuts texts leaves them out. Lines of equal rank stay in their order.
func rankDigest(lines []digestLine) {
	rank := func(l digestLine) int {
		return slices.Index([]notifier.Type{notifier.Warning, notifier.Failure}, l.typ)
	}
	slices.SortStableFunc(lines, func(a, b digestLine) int { return cmp.Compare(rank(b), rank(a)) })
}

// digestText returns a message in one line: its title, or the beginning of its text.
func digestText(m *notifier.Message) string {
	m = m.WithoutDialect()
	text := m.Title
	if strings.TrimSpace(text) == "" {
		text = markup.FirstLine(strings.TrimSpace(markup.Convert(m.Body, m.Format, markup.Text)))
	}
	if text = markup.TruncateBytes(markup.OneLine(text), digestLineText); text == "" {
		text = "(files)"
	}
	return strings.Clone(text) // the message may be large
}

// digestTitle returns the title of a digest.
func digestTitle(key string, counts rules.Counts) string {
	var parts []string
	for i, typ := range slices.Backward(rules.Types) {
		if n := counts[i]; n > 0 {
			parts = append(parts, countOf(n, typ))
		}
	}
	return fmt.Sprintf("%s: %s", key, strings.Join(parts, ", "))
}

// countOf returns a number of messages of a type in words.
func countOf(n int, t notifier.Type) string {
	word := map[notifier.Type][2]string{
		notifier.Failure: {"failure", "failures"}, notifier.Warning: {"warning", "warnings"},
		notifier.Success: {"success", "successes"}, notifier.Info: {"message", "messages"},
	}[t]
	if n == 1 {
		return "1 " + word[0]
	}
	return fmt.Sprintf("%d %s", n, word[1])
}

// digestBody returns the text of a digest.
func digestBody(lines []digestLine, more rules.Counts, now time.Time, zone *time.Location) string {
	var out []string
	rest := more
	for i, l := range lines {
		if i >= digestLines {
			rest[max(slices.Index(rules.Types, l.typ), 0)]++
			continue
		}
		text := clockTime(l.time, now, zone) + " "
		if l.typ != notifier.Info {
			text += string(l.typ) + ": "
		}
		text += l.text
		var notes []string
		switch {
		case !l.opened.IsZero():
			notes = append(notes, "open since "+clockTime(l.opened, now, zone))
		case l.count > 1:
			notes = append(notes, fmt.Sprintf("%d messages", l.count))
		}
		if l.repeats > 0 {
			notes = append(notes, fmt.Sprintf("%d repetitions before", l.repeats))
		}
		if len(notes) > 0 {
			text += " (" + strings.Join(notes, ", ") + ")"
		}
		out = append(out, text)
	}
	if n := rest.Total(); n > 0 {
		text := fmt.Sprintf("and %d more", n)
		if rest[3] > 0 && n > rest[3] {
			text += ", " + countOf(rest[3], notifier.Failure) + " among them"
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

// clockTime returns the time of day, with the date if it is not today.
func clockTime(t, now time.Time, zone *time.Location) string {
	t, now = t.In(zone), now.In(zone)
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("Mon 2 Jan 15:04")
}

// digestZone returns the time zone of the times in a digest. The rule digest sets it, or else
// quiet; the default is the zone of the server.
func digestZone(r *rules.Rules) *time.Location {
	if r != nil && r.Digest != nil && r.Digest.Moment != nil {
		return r.Digest.Moment.Zone.Location()
	}
	if r != nil && len(r.Quiet) > 0 {
		return r.Quiet[0].Zone.Location()
	}
	return time.Local //nolint:gosmopolitan // the server's zone is the default
}
