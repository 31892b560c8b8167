package rules

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// Silence keeps messages of a key from its destinations until a time. A problem that begins or gets
// worse during the silence is held: if it is over before the silence ends, neither it nor its
// resolution is told; otherwise it is told when the silence ends. A message that opens its own
// incident is held, too. Other messages are not sent.
//
// A silence made by a person has at least one of Incident, Tag and Title; a silence of a
// [SilenceWindow] may have none. If it has several, all must match.
type Silence struct {
	ID    uuid.UUID
	Made  time.Time
	From  time.Time // when it begins; the zero value stands for Made
	Until time.Time
	For   time.Duration // from From until Until; 0 if somebody has named the time

	Incident string // the name of an incident, or the ID that destinations know it by
	Tag      string // of destinations; AllTags for every one
	Title    string // what the title begins with, in any case; * stands for any text

	// UntilResolved means that it ends when its incident is resolved, at Until at the latest.
	UntilResolved bool

	Reason string
	Who    string // who has made it

	// Tell means that a message is sent when it begins, and another one when it ends.
	// Begun means that its beginning was noted, and told.
	Tell, Begun bool

	Window uuid.UUID // the ID of the [SilenceWindow] that it belongs to; zero for one that was made

	Count int // messages that it has kept from a destination
}

// AllTags is the tag that every destination has.
const AllTags = "all"

// The bounds of silences.
const (
	MaxSilences    = 200 // of a key
	MaxSilenceTime = 30 * 24 * time.Hour
	maxSilencePlan = 366 * 24 * time.Hour // before one begins
	maxSilenceText = 200                  // bytes of Title, Reason and Who
)

// Normalize trims the texts of s, and returns an error if s cannot be made now. A silence that
// would begin in the past begins now.
func (s *Silence) Normalize(now time.Time) (err error) {
	if s.From.Before(now) {
		s.From = now
	}
	for _, text := range []*string{&s.Tag, &s.Title, &s.Reason, &s.Who} {
		*text = strings.TrimSpace(*text)
	}
	if s.Incident, _, err = notifier.IncidentName(s.Incident); err != nil {
		return errors.New("incident: " + err.Error())
	}
	if s.Tag == anyText {
		s.Tag = AllTags
	}
	if err := cmp.Or(checkSilenceTag(s.Tag, errTag), checkTitle(&s.Title)); err != nil {
		return err
	}
	switch {
	case s.Incident == "" && s.Tag == "" && s.Title == "":
		return errors.New("it would match nothing; write an incident, a tag of URLs (all " +
			"stands for every URL), or a title, which is the beginning of the title of messages")
	case s.UntilResolved && s.Incident == "":
		return errors.New("until: resolved is for a silence of an incident; name the incident, or write a time or, with for, a duration")
	case !s.Until.After(now):
		return errors.New("it would end in the past; write a later until, or for with a duration, such as 2h")
	case !s.Until.After(s.From):
		return errors.New("it would end before it begins; write an until that is later than from")
	case s.From.Sub(now) > maxSilencePlan:
		return errors.New("it would begin in more than a year; write an earlier from")
	case s.Until.Sub(s.From) > MaxSilenceTime:
		return errors.New("it would last longer than 30 days; write an earlier end, and make another silence then")
	}
	if err := checkSilenceTexts(s.Title, s.Reason); err != nil {
		return err
	}
	s.Who = markup.TruncateBytes(markup.OneLine(s.Who), maxSilenceText-len("…"))
	return nil
}

// checkSilenceTexts returns an error if the title or the reason of a silence is too long, or
// has more than one line.
func checkSilenceTexts(title, reason string) error {
	switch {
	case len(title) > maxSilenceText:
		return errors.New("title: it is longer than 200 bytes; write only its beginning")
	case len(reason) > maxSilenceText:
		return errors.New("reason: it is longer than 200 bytes; write it shorter")
	case strings.ContainsFunc(title+reason, unicode.IsControl):
		return errors.New("title and reason are one line each; remove line breaks and other control characters")
	}
	return nil
}

// clockTolerance is the maximum difference between the clocks of gateways. A larger difference is
// taken for a clock that was set back.
const clockTolerance = 5 * time.Second

// isAhead reports whether the silence was made when the clock was ahead, and has been set back
// since.
func (s *Silence) isAhead(now time.Time) bool {
	return s.Window == (uuid.UUID{}) && s.Made.Sub(now) > clockTolerance
}

// moveBack corrects the times of a silence that was made when the clock was ahead: a silence that
// began then begins now and lasts as long, unless somebody has named its end.
func (s *Silence) moveBack(now time.Time) {
	if !s.Begins().After(s.Made) {
		s.From = now
		if s.For > 0 {
			s.Until = now.Add(s.For)
		}
	}
	s.Made = now
}

// active reports whether the silence holds. After the clock was set back by far, a silence holds
// only if it was made when the clock was ahead and began at once.
func (s *Silence) active(now time.Time) bool {
	if s.isAhead(now) {
		x := *s
		x.moveBack(now)
		s = &x
	}
	return !now.Before(s.From) && now.Before(s.Until) && s.Until.Sub(now) <= MaxSilenceTime+time.Hour
}

// Planned reports whether the silence begins later.
func (s *Silence) Planned(now time.Time) bool {
	return now.Before(s.From) && s.From.Sub(now) <= maxSilencePlan+time.Hour
}

// Begins returns when the silence begins, or has begun.
func (s *Silence) Begins() time.Time {
	if s.From.IsZero() {
		return s.Made
	}
	return s.From
}

// silenceLead is how long before the start of a silence the gateway begins to store what
// destinations of its key know of incidents.
const silenceLead = time.Minute

// near reports whether the silence holds, or will in a minute.
func (s *Silence) near(now time.Time) bool { return s.active(now) || s.active(now.Add(silenceLead)) }

// begins reports whether the silence has begun and that has not been noted.
func (s *Silence) begins(now time.Time) bool {
	return !s.Begun && !s.From.IsZero() && s.active(now)
}

// Concerns reports whether the silence holds for a destination with tags.
func (s *Silence) Concerns(tags []string) bool {
	scope := Scope{Tag: s.Tag}
	return strings.EqualFold(s.Tag, AllTags) || scope.concerns(tags)
}

// matches reports whether the silence holds for messages with a title about an
// incident.
func (s *Silence) matches(incident notifier.Incident, title string) bool {
	return (s.Incident == "" || s.isAbout(incident)) && titleMatches(s.Title, title)
}

// isAbout reports whether the silence names an incident.
func (s *Silence) isAbout(incident notifier.Incident) bool {
	return s.Incident == incident.Name || s.Incident == incident.ID
}

// Matches reports whether the silence matches a message about an incident to destinations of which
// one has the tags.
func (s *Silence) Matches(incident notifier.Incident, title string, tags []string) bool {
	return s.Concerns(tags) && s.matches(incident, title)
}

// MatchesIncident reports whether the silence holds for an incident, or has stopped its steps.
func (s *Silence) MatchesIncident(x *Incident) bool {
	about := notifier.Incident{Name: x.Name, ID: x.Derived}
	return s.matches(about, x.Title) || x.Escalation.Silenced && s.matches(about, x.Escalation.SilencedAs)
}

// Silences are the silences of a key.
type Silences []Silence

// Match returns the silence that keeps a message from a destination with tags, or nil. If there
// are several, it returns the one that ends last.
func (s Silences) Match(now time.Time, incident notifier.Incident, title string, tags []string) *Silence {
	return s.last(func(x *Silence) bool { return x.active(now) && x.Concerns(tags) && x.matches(incident, title) })
}

// MatchIncident is Match for the steps of an incident. A silence that has stopped the steps still
// matches after the title changes.
func (s Silences) MatchIncident(now time.Time, x *Incident, tags []string) *Silence {
	about := notifier.Incident{Name: x.Name, ID: x.Derived}
	if found := s.Match(now, about, x.Title, tags); found != nil || !x.Escalation.Silenced {
		return found
	}
	return s.Match(now, about, x.Escalation.SilencedAs, tags)
}

// match is Match for silences that hold for the destination.
func (s Silences) match(now time.Time, x *Item) *Silence {
	return s.last(func(o *Silence) bool { return o.active(now) && o.matches(x.Incident, x.Title) })
}

// last returns the silence that ends last among the ones that f accepts, or nil.
func (s Silences) last(f func(*Silence) bool) (found *Silence) {
	for i := range s {
		if x := &s[i]; f(x) && (found == nil || x.Until.After(found.Until)) {
			found = x
		}
	}
	return found
}

// For returns the active silences that hold for a destination with tags.
func (s Silences) For(now time.Time, tags []string) (out Silences) {
	for i := range s {
		if s[i].active(now) && s[i].Concerns(tags) {
			out = append(out, s[i])
		}
	}
	return out
}

// Find returns the silence with an ID if it is active, or nil.
func (s Silences) Find(now time.Time, id uuid.UUID) *Silence {
	i := slices.IndexFunc(s, func(x Silence) bool { return x.ID == id })
	if id == (uuid.UUID{}) || i < 0 || !s[i].active(now) {
		return nil
	}
	return &s[i]
}

// Holding returns the silences that hold at a time.
func (s Silences) Holding(now time.Time) (holding Silences) {
	for i := range s {
		if s[i].active(now) {
			holding = append(holding, s[i])
		}
	}
	return holding
}

// Left returns the silences that hold at a time or are planned, and those that have ended.
func (s Silences) Left(now time.Time) (left, ended Silences) {
	for _, x := range s {
		if x.active(now) || x.Planned(now) {
			left = append(left, x)
		} else {
			ended = append(ended, x)
		}
	}
	return left, ended
}

// next returns when the first of the silences begins or ends.
func (s Silences) next() (next time.Time) {
	for _, x := range s {
		at := x.Until
		if !x.Begun && !x.From.IsZero() {
			at = x.From
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// WithSilences returns the rules of a destination with the silences that hold for it.
// r may be nil. The result is nil if there are neither rules nor silences.
func (r *Rules) WithSilences(s Silences) *Rules {
	if len(s) == 0 {
		return r
	}
	var out Rules
	if r != nil {
		out = *r
	}
	out.Silences = s
	return &out
}

// silence decides about a message that comes in during silences. done reports whether a silence
// keeps it from the destination; otherwise the other rules decide.
func (r *Rules) silence(a *Arrival, v *Verdict) (done bool) {
	if len(r.Silences) == 0 {
		return false
	}
	now, l, s, x := a.Now, a.Lane, a.Subject, &a.Item
	following := r.Silences.Find(now, l.silencedBy(cmp.Or(x.About, x.Subject)))
	if following == nil {
		following = r.Silences.Find(now, s.Silenced)
	}
	if x.State == notifier.Resolved {
		if following == nil || s.Passed != "" {
			return false // the destination knows the problem, or the silence does not
		}
		l.endSilenced(s, x.Subject, following.ID, v)
		return v.silenced(following)
	}
	by := r.Silences.match(now, x)
	if by == nil {
		by = following
	}
	if by == nil {
		return false
	}
	if x.Own && r.Dedupe.suppresses(now, s, x) {
		return false // it repeats a message that waits
	}
	if x.State != notifier.Open && !x.Own {
		return v.silenced(by)
	}
	x.Opens = x.State == notifier.Open && s.Passed == ""
	l.endOlder(s, x, v)
	s.Silenced = by.ID
	if len(l.Items) >= MaxItems {
		s.Counted = x.Type
		l.countSilenced(by, x.Type, a.NewID)
		return v.silenced(by)
	}
	x.Silence, x.Hold, x.Until = by.ID, BySilence, by.Until
	if s.Way.IsDigest() { // which tells an older state
		x.After, x.Until = s.Way.Job, time.Time{}
	}
	l.Items = append(l.Items, *x)
	s.Next = x.Mark()
	v.Outcome, v.Hold, v.Until, v.Silence = Held, BySilence, by.Until, by.ID
	return true
}

// silenced makes v say that a silence keeps the message from the destination.
func (v *Verdict) silenced(by *Silence) bool {
	v.Outcome, v.Silence = Silenced, by.ID
	return true
}

// endSilenced removes the held items of an incident that is over and that the destination knows
// nothing of. Otherwise, for example, another rule that holds an earlier resolution would tell the
// end of a silenced problem.
func (l *Lane) endSilenced(s *Subject, subject string, by uuid.UUID, v *Verdict) {
	l.Items = slices.DeleteFunc(l.Items, func(o Item) bool {
		ends := o.Subject == subject && o.tellsState()
		if ends {
			if o.Silence == (uuid.UUID{}) {
				o.Silence = by
			}
			v.Evicted = append(v.Evicted, Evicted{Item: o})
		}
		return ends
	})
	l.uncount(s)
	s.Silenced, s.Next = uuid.UUID{}, Mark{}
}

// endOlder removes held older states of a silenced incident, so that only its present state is
// held.
func (l *Lane) endOlder(s *Subject, x *Item, v *Verdict) {
	l.Items = slices.DeleteFunc(l.Items, func(o Item) bool {
		older := o.Subject == x.Subject && o.tellsState()
		if older {
			v.Evicted = append(v.Evicted, Evicted{Item: o, Newer: true, By: x.Job})
		}
		return older
	})
	l.uncount(s)
}

// endSilencedOlder removes older states that silences hold, of the incident of an item that other
// rules hold.
func (l *Lane) endSilencedOlder(s *Subject, x *Item, v *Verdict) {
	if !x.tellsState() || x.Subject == "" {
		return
	}
	l.Items = slices.DeleteFunc(l.Items, func(o Item) bool {
		older := o.Subject == x.Subject && o.Silence != uuid.UUID{}
		if older {
			v.Evicted = append(v.Evicted, Evicted{Item: o, Newer: true, By: x.Job})
		}
		return older
	})
	l.uncount(s)
	s.Silenced = uuid.UUID{}
}

// silencedBy returns the silence that holds the newest state of an incident.
func (l *Lane) silencedBy(subject string) (id uuid.UUID) {
	for _, o := range l.Items {
		if subject != "" && o.Subject == subject {
			id = o.Silence
		}
	}
	return id
}

// SilencedCounts counts the problems that a silence keeps from a destination and that the lane
// had no room for.
type SilencedCounts struct {
	Silence uuid.UUID
	Until   time.Time // when it ends
	More
}

func (o *SilencedCounts) fields(c *wire.Codec) {
	wire.Array(c, 1, o.Silence[:])
	wire.Time(c, 2, &o.Until)
	wire.Record(c, 3, &o.More, (*More).fields)
}

// countSilenced counts a problem of a type.
func (l *Lane) countSilenced(by *Silence, t notifier.Type, id func() uuid.UUID) {
	i := slices.IndexFunc(l.Over, func(o SilencedCounts) bool { return o.Silence == by.ID })
	if i < 0 {
		i = len(l.Over)
		l.Over = append(l.Over, SilencedCounts{Silence: by.ID, Until: by.Until, More: More{ID: id()}})
	}
	l.Over[i].Counts[max(slices.Index(Types, t), 0)]++
}

// uncount subtracts the problem of a subject from the counts, because it is over or has changed.
func (l *Lane) uncount(s *Subject) {
	i := slices.IndexFunc(l.Over, func(o SilencedCounts) bool { return o.Silence == s.Silenced })
	if s.Counted != "" && i >= 0 { // otherwise the number was told
		n := &l.Over[i].Counts[max(slices.Index(Types, s.Counted), 0)]
		if *n = max(*n-1, 0); l.Over[i].Counts.Total() == 0 {
			l.Over = slices.Delete(l.Over, i, i+1)
		}
	}
	s.Counted = ""
}

// tellCounts adds the counts of ended silences to the next message.
func (r *Rules) tellCounts(now time.Time, l *Lane) {
	l.Over = slices.DeleteFunc(l.Over, func(o SilencedCounts) bool {
		if r.Silences.Find(now, o.Silence) != nil {
			return false
		}
		for i, n := range o.Counts {
			more := &l.More[kindOf(Types[i])]
			if n > 0 && more.Counts.Total() == 0 {
				more.ID = o.ID
				o.ID[15] ^= 1 // the other kind is another message
			}
			more.Counts[i] += n
		}
		return true
	})
}

// keepsSilent reports whether a silence still holds an item, and sets why and until when.
func (r *Rules) keepsSilent(now time.Time, x *Item) bool {
	by := r.Silences.Find(now, x.Silence)
	if by == nil && x.State != notifier.Resolved {
		by = r.Silences.match(now, x)
	}
	if by == nil {
		x.Silence = uuid.UUID{}
		return false
	}
	x.Silence, x.Hold, x.Until = by.ID, BySilence, by.Until
	return true
}

func (s *Silence) fields(c *wire.Codec) {
	wire.Array(c, 1, s.ID[:])
	wire.Time(c, 2, &s.Made)
	wire.Time(c, 3, &s.Until)
	wire.Text(c, 4, &s.Incident)
	wire.Text(c, 5, &s.Tag)
	wire.Text(c, 6, &s.Title)
	wire.Text(c, 7, &s.Reason)
	wire.Text(c, 8, &s.Who)
	wire.Number(c, 9, &s.Count)
	wire.Time(c, 10, &s.From)
	wire.True(c, 11, &s.Tell)
	wire.True(c, 12, &s.Begun)
	wire.Array(c, 13, s.Window[:])
	wire.Number(c, 14, &s.For)
	wire.True(c, 15, &s.UntilResolved)
}
