package rules

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// runWords returns runs as text: the outcome with the time, and for how long it took.
func runWords(runs []Run) string {
	var out []string
	for i := range runs {
		r := &runs[i]
		text := string(r.Outcome)
		if text == "" {
			text = "fine"
		}
		text += " " + r.At.Format("2 15:04")
		if r.Took > 0 {
			text += " " + FormatTime(r.Took)
		}
		if !r.Due.IsZero() {
			text += " due " + r.Due.Format("2 15:04")
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// TestRememberedRuns checks which runs a beat remembers: those that came, in time or not, those that did not,
// and the one that has not ended.
func TestRememberedRuns(t *testing.T) {
	t.Parallel()
	calendar, err := ParseCalendar("15 3 * * 1-5", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	daily := Expect{Name: "nightly", Every: 24 * time.Hour, Grace: time.Hour, MaxRun: 2 * time.Hour}
	weekdays := Expect{Name: "backup", Calendar: calendar, Grace: time.Hour}
	for name, x := range map[string]struct {
		e    Expect
		do   string // what happens: "start", "came", "failed", "look", each with a day and a time of May 2026; the 4th is a Monday
		want string
	}{
		"none yet":          {daily, "look 4 12:00", ""},
		"never came":        {daily, "look 6 12:00", "missed 5 00:00, missed 6 00:00"},
		"on time":           {daily, "came 4 03:00, came 5 03:30", "fine 4 03:00, fine 5 03:30"},
		"in grace":          {daily, "came 4 03:00, look 5 03:30", "fine 4 03:00"},
		"late":              {daily, "came 4 03:00, look 5 05:00, came 5 06:00", "fine 4 03:00, late 5 06:00 due 5 03:00"},
		"late now":          {daily, "came 4 03:00, look 5 05:00", "fine 4 03:00, missed 5 03:00"},
		"missed one":        {daily, "came 4 03:00, look 5 05:00, came 6 03:10", "fine 4 03:00, missed 5 03:00, fine 6 03:10"},
		"missed, and early": {daily, "came 4 03:00, look 5 05:00, came 6 02:10", "fine 4 03:00, missed 5 03:00, fine 6 02:10"},
		"late by a night":   {daily, "came 4 03:00, look 5 05:00, came 6 01:00", "fine 4 03:00, late 6 01:00 due 5 03:00"},
		"missed, and late":  {daily, "came 4 03:00, look 5 05:00, came 6 06:00", "fine 4 03:00, missed 5 03:00, late 6 06:00 due 6 03:00"},
		"missed until now":  {daily, "came 4 03:00, look 5 05:00, look 7 03:30", "fine 4 03:00, missed 5 03:00, missed 6 03:00"},
		"failed":            {daily, "came 4 03:00, failed 5 03:00, came 6 03:00", "fine 4 03:00, failed 5 03:00, fine 6 03:00"},
		"failed late":       {daily, "came 4 03:00, look 5 05:00, failed 5 06:00", "fine 4 03:00, failed 5 06:00"},
		"took long":         {daily, "start 4 03:00, came 4 04:30", "fine 4 04:30 1h30m"},
		"runs":              {daily, "start 4 03:00, look 4 04:00", "running 4 03:00 1h"},
		"too long":          {daily, "start 4 03:00, look 4 05:30, came 4 06:00", "too_long 4 06:00 3h"},
		"too long now":      {daily, "start 4 03:00, look 4 05:30", "too_long 4 03:00 2h30m"},
		"failed too late":   {daily, "start 4 03:00, look 4 05:30, failed 4 06:00", "failed 4 06:00 3h"},
		"never ended":       {daily, "start 4 03:00, look 4 05:30, start 5 02:00, came 5 02:30", "too_long 4 03:00, fine 5 02:30 30m"},
		"over a weekend":    {weekdays, "came 8 03:20, look 11 03:30, came 11 03:40", "fine 8 03:20, fine 11 03:40"},
		"friday was missed": {
			weekdays, "came 7 03:20, look 8 05:00, came 11 03:40", "fine 7 03:20, missed 8 03:15, fine 11 03:40",
		},
	} {
		at := func(day, clock string) time.Time {
			now, err := time.Parse("2006-01-2 15:04", "2026-05-"+day+" "+clock)
			if err != nil {
				t.Fatal(err)
			}
			return now
		}
		var b Beat
		var u Uptime
		now := at("4", "00:00")
		b.Arm(now, &u, &x.e)
		for now := now; now.Before(at("4", "00:01")); now = now.Add(time.Minute) {
			u.See(now, maxSeeEvery, false)
		}
		for step := range strings.SplitSeq(x.do, ", ") {
			words := strings.Fields(step)
			for next := at(words[1], words[2]); now.Before(next); { // a gateway runs all the time
				now = now.Add(10 * time.Second)
				u.See(now, maxSeeEvery, false)
				b.Arm(now, &u, &x.e)
			}
			switch words[0] {
			case "start":
				b.Start(now, &u, &x.e)
			case "came", "failed":
				b.Came(now, &u, &x.e, words[0] == "failed", "")
			case "look":
				if b.Late(now, &u) {
					b.Miss(now)
				}
				if b.TooLong(now, &u) {
					b.Overrun(now)
				}
			}
		}
		if got := runWords(b.Recent(now, &u, &x.e)); got != x.want {
			t.Errorf("%s: %s\nwant %s", name, got, x.want)
		}
	}
}

// TestRunsAreBounded checks that a beat remembers the last runs, however many were missed and however
// much the jobs posted, and what failed jobs posted longer than the rest.
func TestRunsAreBounded(t *testing.T) {
	t.Parallel()
	minutely, err := ParseCalendar("* * * * *", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Expect{
		{Name: "often", Every: time.Second, Grace: time.Second}, {Name: "often", Calendar: minutely, Grace: time.Second},
	} {
		now := berlin(t, "2026-05-04")
		var b Beat
		var u Uptime
		b.Arm(now, &u, &e)
		now = now.AddDate(1, 0, 0)
		b.Arm(now, &u, &e)
		b.Miss(now)
		if n := len(b.Recent(now, &u, &e)); n != MaxRuns {
			t.Errorf("%s: a year without a beat has %d runs", e.How(), n)
		}
		for i := range 100 {
			now = now.Add(time.Minute)
			b.Came(now, &u, &e, i%10 == 5, "")
			b.Posted(strings.Repeat("ä", 3<<10))
			if size := len(wire.Append(nil, &b, (*Beat).Fields)); size > maxOutputs+100*MaxRuns {
				t.Fatalf("the record has %d bytes", size)
			}
		}
		runs, failed, fine := b.Recent(now, &u, &e), 0, 0
		for i := range runs {
			r := &runs[i]
			if !utf8.ValidString(r.Output) {
				t.Errorf("the output is cut within a character: %q", r.Output[:8])
			}
			switch {
			case r.Output == "":
			case r.Outcome == RunFailed:
				failed++
			default:
				fine++
			}
		}
		if len(runs) != MaxRuns || runs[MaxRuns-1].Output == "" || failed < 2 || fine < 1 {
			t.Errorf("%d runs, with the output of %d failed ones and %d others", len(runs), failed, fine)
		}
		b.KeepOutputs(now, 5*time.Minute)
		for i := range b.Runs {
			if r := &b.Runs[i]; r.Output != "" && now.Sub(r.At) >= 5*time.Minute {
				t.Errorf("the output of %v is still there", r.At)
			}
		}
	}
}

// TestBeatOfOlderProgram checks that an older program can read a record with runs, and that a record
// without them has none.
func TestBeatOfOlderProgram(t *testing.T) {
	t.Parallel()
	now := time.UnixMicro(1_700_000_000_000_000)
	run := Run{At: now, Outcome: RunFailed, Took: time.Minute, Exit: "3", Due: now, Output: "x"}
	b := Beat{Key: "ops", Name: "nightly", Last: now, Runs: []Run{run}}
	record := wire.Append(nil, &b, (*Beat).Fields)
	var back Beat
	if err := wire.Decode(record, &back, (*Beat).Fields); err != nil || len(back.Runs) != 1 || back.Runs[0] != b.Runs[0] {
		t.Errorf("%+v, %v", back, err)
	}
	var old struct{ key, name string }
	err := wire.Decode(record, &old, func(o *struct{ key, name string }, c *wire.Codec) {
		wire.Text(c, 2, &o.key)
		wire.Text(c, 3, &o.name)
	})
	if err != nil || old.key != "ops" || old.name != "nightly" {
		t.Errorf("%+v, %v", old, err)
	}
}
