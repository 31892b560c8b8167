package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// checkDestinations sends a test message to each destination of the keys, with --send.
func (d *doctor) checkDestinations() {
	keys, n := d.config.Keys(), 0
	using := map[string][]string{} // the keys that have a destination
	for _, k := range keys {
		n += len(k.Targets)
		for _, t := range k.Targets {
			if names := using[t.Hash()]; !slices.Contains(names, k.Name) {
				using[t.Hash()] = append(names, k.Name)
			}
		}
	}
	if !d.send && n == 0 && len(keys) > 0 {
		d.add(stateOK, "destinations", words.Count(len(keys), "key")+" without a URL, only with devices or an inbox", "")
		return
	}
	if !d.send {
		d.add(stateOK, "destinations", fmt.Sprintf("%s of %s can be used; --send sends a test message to each",
			words.Count(n, "URL"), words.Count(len(keys), "key")), "")
		return
	}
	seen, found := map[string]bool{}, false
	for _, k := range keys {
		if d.key != "" && k.Name != d.key {
			continue
		}
		found = true
		var targets []notifier.Target
		for _, t := range k.Targets {
			if !seen[t.Hash()] {
				seen[t.Hash()] = true
				targets = append(targets, t)
			}
		}
		if len(k.Targets) == 0 {
			d.add(stateOK, "destinations", "the key "+k.Name+" has no URL, only devices or an inbox", "")
		}
		if len(targets) == 0 {
			continue
		}
		m := &notifier.Message{
			Title: "Test", Body: "caddy notify doctor has sent this message to see whether it arrives.",
			Time: time.Now(), Identity: k.Site.Identity,
		}
		r := d.config.Conf.Shared.Sender.Send(d.cmd.Context(), m, targets, notifier.Options{Timeout: k.Site.Limits.Timeout})
		for i, result := range r.Results {
			names := []string{k.Name}
			if d.key == "" {
				names = using[targets[i].Hash()]
			}
			d.addResult(strings.Join(names, ", "), &result)
		}
	}
	switch {
	case !found && d.key != "":
		d.add(stateFail, "destinations", "the configuration has no key "+d.key, "name one that it has")
	case !found:
		d.add(stateWarn, "destinations", "the configuration has no key", "add key <name> { url … }; saved keys are tested in the console")
	}
}

// addResult adds the outcome of a test message to a destination of keys.
func (d *doctor) addResult(keys string, r *notifier.Result) {
	name := keys + ": " + r.Service + " " + r.Destination
	if r.Err == nil {
		d.add(stateOK, "destinations", name+" has taken the test message", "")
		return
	}
	s := stateFail
	if r.Optional {
		s = stateWarn
	}
	d.add(s, "destinations", name+": "+r.Err.Error(), "see A destination fails in docs/troubleshooting.md")
}

// checkPublicURLs checks each public_url.
func (d *doctor) checkPublicURLs() {
	var all []string
	for _, s := range d.config.Conf.All() {
		if s.PublicURL != "" && !slices.Contains(all, s.PublicURL) {
			all = append(all, s.PublicURL)
		}
	}
	if len(all) == 0 {
		d.add(stateOK, "public_url", "none is set, and nothing needs it", "")
	}
	for _, address := range all {
		d.checkPublicURL(address)
	}
}

// publicPaths are paths of the gateway that can be asked without a secret: a login may stand
// before the first one, but not before the second, which links in messages use.
var publicPaths = []string{httpapi.RouteHealth, "/notify/incidents/doctor"}

// checkPublicURL checks whether an address can be reached and leads to this gateway.
func (d *doctor) checkPublicURL(address string) {
	const check = "public_url"
	first := 0 // the status of the first answer
	for _, path := range publicPaths {
		status, header, err := d.ask(http.MethodGet, address+path)
		if err != nil && d.stopped {
			d.add(stateWarn, check, address+" cannot be reached: "+reason(err), "if it leads to this machine, start Caddy")
			return
		}
		if err != nil {
			d.add(stateFail, check, address+" cannot be reached: "+reason(err),
				"check DNS, certificate, firewall and port, or correct public_url; "+
					"a router may keep this machine, and nobody else, from its public address")
			return
		}
		d.date(clockOfPublicURL, address, header)
		first = cmp.Or(first, status)
		if d.running != nil && d.running.Answer != "" && header.Get(gateway.CheckHeader) == d.running.Answer {
			d.add(stateOK, check, address+" leads to this gateway", "")
			return
		}
	}
	const remedy = "let DNS or the proxy lead to this server; public_url is the address with what stands before /notify"
	locked := first == http.StatusUnauthorized || first == http.StatusForbidden
	switch {
	case d.running != nil && d.running.Queue != nil && d.running.Queue.Ahead != nil && first == http.StatusOK:
		d.add(stateWarn, check, address+" leads to another gateway", "if it shares the PostgreSQL queue, all is well; otherwise "+remedy)
	case d.running != nil && locked:
		d.add(stateWarn, check,
			fmt.Sprintf("%s asks for a login, also for links in messages, so that it cannot be compared", address),
			"leave out the addresses that links use, as docs/phone.md shows")
	case d.running != nil:
		d.add(stateFail, check, fmt.Sprintf("%s answers %d, but it is not this gateway", address, first), remedy)
	case first == http.StatusOK || locked:
		d.add(stateOK, check, address+" answers; without a running server here it cannot be compared", "")
	default:
		d.add(stateFail, check, fmt.Sprintf("%s answers %d to %s", address, first, publicPaths[0]), remedy)
	}
}

// ask sends a request without a body, and returns the status and the header of the response.
func (d *doctor) ask(method, address string) (status int, header http.Header, err error) {
	ctx, cancel := context.WithTimeout(d.cmd.Context(), answerTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("User-Agent", version.Agent)
	r.Header.Set("Cache-Control", "no-cache")
	if method == http.MethodGet && d.running != nil && d.running.Token != "" {
		r.Header.Set(gateway.CheckHeader, d.running.Token)
	}
	resp, err := d.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, resp.Header, resp.Body.Close()
}

// reason returns the error of a request without its method and address.
func reason(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return err.Error()
}

// date is the difference between the clock of this machine and another clock.
type date struct {
	of    clockOf
	whose string
	ahead time.Duration
}

// clockOf is the kind of machine that has a clock, the most useful last: public_url may be this
// machine.
type clockOf int

const (
	clockOfPublicURL clockOf = iota
	clockOfDatabase
	clockOfDestination
)

// compare notes how far the clock of this machine is ahead of another one.
func (d *doctor) compare(of clockOf, whose string, ahead time.Duration) {
	d.dates = append(d.dates, date{of, whose, ahead})
}

// date notes the time in an answer, which has no fractions of seconds.
func (d *doctor) date(of clockOf, address string, header http.Header) bool {
	at, err := http.ParseTime(header.Get("Date"))
	u, err2 := url.Parse(address)
	if err != nil || err2 != nil {
		return false
	}
	d.compare(of, u.Host, time.Since(at.Add(time.Second/2)))
	return true
}

// maxAsked is how many destinations are asked for their time.
const maxAsked = 3

// askDestinations asks an https destination for its time, with a request that contains only the
// host of its URL. It asks further destinations only if one does not answer.
func (d *doctor) askDestinations() {
	var hosts []string
	for _, k := range d.config.Keys() {
		for _, t := range k.Targets {
			host := d.hostOf(t)
			if host == "" || slices.Contains(hosts, host) {
				continue
			}
			if _, header, err := d.ask(http.MethodHead, "https://"+host+"/"); err == nil && d.date(clockOfDestination, "https://"+host, header) {
				return
			}
			if hosts = append(hosts, host); len(hosts) == maxAsked {
				return
			}
		}
	}
}

// hostOf returns the host of the first request to a destination, or "" if it is not https or
// if a part of the name is secret.
func (d *doctor) hostOf(t notifier.Target) string {
	ctx, cancel := context.WithTimeout(d.cmd.Context(), answerTime)
	defer cancel()
	r := t.DryRun(ctx, version.Agent, &notifier.Message{Title: "Test", Body: "Test", Time: time.Now()})
	if len(r.Requests) == 0 {
		return ""
	}
	words := strings.Fields(r.Requests[0]) // POST https://host/path
	if len(words) < 2 {
		return ""
	}
	u, err := url.Parse(words[1])
	if err != nil || u.Scheme != "https" || strings.Contains(u.Host, "xxxxx") {
		return ""
	}
	return u.Host
}

// Clocks with a difference up to clockRight agree. Up to clockNear nothing fails at once:
// signatures, tokens and schedules allow minutes.
const (
	clockRight = 5 * time.Second
	clockNear  = time.Minute
)

// checkClock compares the clock of the server, or of this machine if none runs, with the
// best of the others.
func (d *doctor) checkClock() {
	if len(d.dates) == 0 && d.config == nil {
		return
	}
	if len(d.dates) == 0 {
		d.add(stateOK, "clock", "not compared: no https destination, PostgreSQL or public_url tells the time", "")
		return
	}
	x := slices.MaxFunc(d.dates, func(a, b date) int { return cmp.Compare(a.of, b.of) })
	x.ahead += d.ahead
	off := x.ahead.Abs().Round(time.Second)
	how := "ahead of"
	if x.ahead < 0 {
		how = "behind"
	}
	const remedy = "let NTP set it, on Linux with timedatectl set-ntp true; signatures and schedules need it"
	switch {
	case off <= clockRight:
		d.add(stateOK, "clock", "agrees with the clock of "+x.whose, "")
	case off <= clockNear:
		d.add(stateWarn, "clock", fmt.Sprintf("it is %s %s the clock of %s", off, how, x.whose), remedy)
	default:
		d.add(stateFail, "clock", fmt.Sprintf("it is %s %s the clock of %s", off, how, x.whose), remedy)
	}
}
