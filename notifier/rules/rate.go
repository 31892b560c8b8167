package rules

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// Rate allows Count messages in the time Per, which begins with the first of them. More messages
// wait until it ends. Failures and openings of incidents have a separate budget of the same size,
// so that other messages cannot use it up.
type Rate struct {
	Count int
	Per   time.Duration
	Scope
}

// maxRate is the largest number of messages of a rate.
const maxRate = 1_000_000

// ParseRate parses the argument of rate, such as 10/1m. duration parses a duration.
func ParseRate(s string, duration func(string) (time.Duration, error)) (r Rate, err error) {
	count, per, ok := strings.Cut(s, "/")
	if r.Count, err = strconv.Atoi(count); err != nil || !ok {
		return r, errors.New("a rate is a number of messages and a time, such as 10/1m")
	}
	if per != "" && (per[0] < '0' || per[0] > '9') { // 10/m
		per = "1" + per
	}
	if r.Per, err = duration(per); err != nil {
		return r, errors.New("a rate is a number of messages and a time, such as 10/1m")
	}
	return r, nil
}

// Check returns an error if the rule is malformed.
func (r *Rate) Check() error {
	if r.Count < 1 || r.Count > maxRate {
		return fmt.Errorf("the number of messages must be from 1 to %d", maxRate)
	}
	if err := checkTime(r.Per); err != nil {
		return err
	}
	return r.Scope.Check()
}

// budget is one of the two budgets of a rate.
type budget string

// The budgets.
const (
	ordinary budget = ""
	alerts   budget = "alerts " // of failures and openings of incidents
)

// budget returns the budget of a rate in which the item counts.
func (x *Item) budget() budget {
	if x.Type == notifier.Failure || x.Opens {
		return alerts
	}
	return ordinary
}

// id identifies a budget of the rate in a record. It ends with the time.
func (r *Rate) id(b budget) string { return fmt.Sprint(string(b), r.Count, r.Types, r.Tag, " ", r.Per) }

// Spent is the used part of a budget.
type Spent struct {
	id    string // of the budget
	Count int
	Since time.Time // when the time began
}

// maxSpent is the maximum number of budgets that a lane remembers. The configuration may no longer
// have some of them.
const maxSpent = 32

func (s *Spent) fields(c *wire.Codec) {
	wire.Text(c, 1, &s.id)
	wire.Number(c, 2, &s.Count)
	wire.Time(c, 3, &s.Since)
}

// per returns the time of the rate.
func (s *Spent) per() time.Duration {
	d, err := time.ParseDuration(s.id[strings.LastIndexByte(s.id, ' ')+1:])
	if err != nil {
		return 0
	}
	return d
}

// spend counts a message with items in the rates of the lane. If a rate is used up, it counts
// nothing and returns when the message may be sent. A message with items of both budgets counts in
// one that has room, the budget of alerts first. An item that only follows an alert belongs to the
// alert's budget.
func (r *Rules) spend(now time.Time, l *Lane, items []Item) (until time.Time) {
	belongs := func(x Item) budget {
		follows := func(o Item) bool { return o.budget() == alerts && o.tellsState() && x.concerns(o.Subject) }
		if x.budget() == alerts || slices.ContainsFunc(items, follows) {
			return alerts
		}
		return ordinary
	}
	for _, b := range []budget{alerts, ordinary} {
		if !slices.ContainsFunc(items, func(x Item) bool { return belongs(x) == b }) {
			continue
		}
		end := r.spendOf(now, l, items, b)
		if end.IsZero() {
			return end
		}
		if until.IsZero() || end.Before(until) {
			until = end
		}
	}
	return until
}

// spendOf is spend for one budget.
func (r *Rules) spendOf(now time.Time, l *Lane, items []Item, b budget) (until time.Time) {
	var used []int // indexes in Spent
	for i := range r.Rate {
		rate := &r.Rate[i]
		if !slices.ContainsFunc(items, func(x Item) bool { return rate.covers(x.Type, nil) }) {
			continue
		}
		i := l.spent(rate.id(b))
		s := &l.Spent[i]
		if !within(s.Since, now, rate.Per) {
			s.Since, s.Count = now, 0
		}
		if end := s.Since.Add(rate.Per); s.Count >= rate.Count && end.After(until) {
			until = end
		}
		used = append(used, i)
	}
	if until.IsZero() {
		for _, i := range used {
			l.Spent[i].Count++
		}
	}
	l.Spent = l.Spent[max(0, len(l.Spent)-maxSpent):]
	return until
}

// spent returns the index in Spent of a budget.
func (l *Lane) spent(id string) int {
	i := slices.IndexFunc(l.Spent, func(s Spent) bool { return s.id == id })
	if i < 0 {
		i = len(l.Spent)
		l.Spent = append(l.Spent, Spent{id: id})
	}
	return i
}
