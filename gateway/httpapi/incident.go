package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway"
	"github.com/caddy-notify/caddy-notify/gateway/alerting"
	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/escalation"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/environment"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/silence"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/told"
	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Incidents lists and shows incidents, and acknowledges, resolves and silences them:
// /notify/incidents.
type Incidents struct {
	*Base
	silences *Silences
	inboxes  *Inboxes
}

// The page of an incident is for anybody with its address, which is in messages and cannot be
// guessed. GET and HEAD change nothing, because scanners of mails follow links.

// MaxIncidentForm bounds the form of an incident's page, in bytes.
const MaxIncidentForm = 4 << 10

// The actions on an incident.
const (
	doAcknowledge = "acknowledge"
	doResolve     = "resolve"
	doSilence     = "silence" // only for managers
)

var incidentActions = []string{doAcknowledge, doResolve, doSilence}

// serveIncident answers a request for the page of an incident.
func (h *Incidents) serveIncident(w http.ResponseWriter, r *http.Request, at *Route) *api.Response {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	if err := at.CheckMethod(w, r); err != nil {
		return h.ErrorResponse(r, err)
	}
	if at.Pattern == RouteConsoleIncident {
		err := h.MayManage(r)
		if err == nil && IsChange(r) {
			err = CheckOwnOrigin(r)
		}
		if err != nil {
			return h.ErrorResponse(r, err)
		}
	}
	found, err := h.doIncident(w, r, at)
	if err != nil {
		return h.ErrorResponse(r, err)
	}
	if isForeignChange(r) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if api.PrefersHTML(r) {
		found.problem = strings.TrimSpace(found.problem + " " + strings.Join(found.warnings, ". "))
		if err := h.WritePage(w, r, http.StatusOK, RouteConsole, h.incidentPage(r, &found)); err != nil {
			return h.ErrorResponse(r, err)
		}
		return nil
	}
	header.Add("Vary", "Accept")
	x := alerting.NewIncidentJSON(found.Incident, h.NameOfIncident(r)(found.Incident))
	if err := WriteJSON(w, http.StatusOK, incidentAnswer{x, found.warnings}); err != nil {
		return h.ErrorResponse(r, err)
	}
	return nil
}

// foundIncident is the incident in an address, with the outcome of the request's action.
type foundIncident struct {
	*rules.Incident
	rights
	own     bool      // it belongs to one of the site's keys
	done    view.Says // the completed action
	problem string    // why an action failed

	warnings []string // about parts of the request that could not be read
}

// incidentAnswer is the JSON of an incident, with warnings about the request.
type incidentAnswer struct {
	alerting.IncidentJSON

	Warnings []string `json:"warnings,omitempty"`
}

// findIncident returns the incident in the address of r. The console has only incidents of the
// site's keys.
func (h *Incidents) findIncident(r *http.Request, q *gateway.Rooms, at *Route) (x *alerting.StoredIncident, own bool, err error) {
	ctx, all := r.Context(), q.Alerts.Incidents
	if at.Pattern == RouteConsoleIncident {
		x, err = all.Find(ctx, at.ID, h.Resolved, h.Site())
		return x, true, err
	}
	if x, err = all.ByID(ctx, at.ID); err != nil {
		return nil, false, Answer(err)
	}
	return x, alerting.BelongsTo(ctx, x.Incident, h.Resolved, h.Site()), nil
}

// doIncident carries out the action of a request to the page of an incident.
func (h *Incidents) doIncident(w http.ResponseWriter, r *http.Request, at *Route) (found foundIncident, err error) {
	q, err := h.App.Open(nil)
	if err != nil {
		return found, err
	}
	foreign := r.Method == http.MethodPost && isForeignChange(r)
	if foreign {
		if hasIdentity(r) {
			return found, errForeignChange
		}
		w.Header().Set("Access-Control-Allow-Origin", "*") // so that the page learns whether it has worked
	}
	stored, own, err := h.findIncident(r, q, at)
	if err != nil {
		return found, err
	}
	found = foundIncident{Incident: stored.Incident, rights: h.rightsTo(r, own), own: own}
	var form incidentForm
	if r.Method == http.MethodPost {
		if form, err = readIncidentForm(w, r); err != nil {
			return found, err
		}
		if foreign && form.do != doAcknowledge {
			return found, errForeignAction
		}
	}
	found.warnings = form.warnings
	switch form.do {
	case "":
		return found, nil
	case doSilence:
		found.done, err = h.silenceIncident(r, &found, &form)
		return found, err
	}
	change := q.Alerts.Incidents.Acknowledge
	if form.do == doResolve {
		change = q.Alerts.Incidents.Resolve
	}
	x, changed, err := change(r.Context(), stored, message.Who{User: found.user, Typed: form.by})
	switch {
	case err != nil:
		return found, err
	case !changed && x.IsOpen():
		found.problem = "It was acknowledged before; the first one counts."
	case !changed:
		found.problem = "It is over already."
	case form.do == doResolve:
		found.done.Text = "It is resolved. Those who were told of it are told that."
	case x.Own:
		found.done.Text = "You take care of it. Nobody else is told."
	case x.Acknowledged.Until.IsZero():
		found.done.Text = "You take care of it. Nobody else is told until it is resolved."
	default:
		found.done = view.Says{Text: "You take care of it. If it is still open then, the first step begins again", At: x.Acknowledged.Until}
	}
	found.Incident = x
	return found, nil
}

// isForeignChange reports whether a page of another site sent a request that changes something, as
// the web app of ntfy does for the button Acknowledge.
func isForeignChange(r *http.Request) bool { return CheckOwnOrigin(r) != nil }

// hasIdentity reports whether a request shows who sends it. A page of another site must not act in
// the name of its reader. Without an identity it can do no more than anybody who knows the ID of
// the incident.
func hasIdentity(r *http.Request) bool {
	return len(r.Header["Cookie"])+len(r.Header["Authorization"]) > 0 || userOf(r) != "" || r.TLS != nil && len(r.TLS.PeerCertificates) > 0
}

// errForeignAction is returned to a page of another site that wants to do more than acknowledge.
var errForeignAction = api.Errorf(http.StatusForbidden,
	"a page of another site sent this request; it can acknowledge, and everything else is done on the incident's own page")

// incidentForm is the content of the form on the page of an incident.
type incidentForm struct {
	do     string // acknowledge, resolve or silence
	by     string // the name of the person
	length string // how long it is silenced

	warnings []string // about parts that could not be read
}

// readIncidentForm reads the form, or its fields in another format. A request without an action
// acknowledges.
func readIncidentForm(w http.ResponseWriter, r *http.Request) (f incidentForm, err error) {
	q := api.ReadSignal(w, r, message.Limits{MaxBody: MaxIncidentForm}, "do", "by", "for")
	defer q.Close()
	query := r.URL.Query()
	get := func(name string) string { return cmp.Or(q.SignalField(name), query.Get(name)) }
	f = incidentForm{get("do"), message.PersonOf(get("by")), get("for"), nil}
	if text := q.SignalText(); f.do == "" && slices.Contains(incidentActions, text) {
		f.do = text
	}
	f.do, f.warnings = cmp.Or(f.do, doAcknowledge), q.Warnings()
	if !slices.Contains(incidentActions, f.do) {
		return f, api.Errorf(http.StatusBadRequest, "do must be %s, %s or %s", doAcknowledge, doResolve, doSilence)
	}
	return f, nil
}

// errNotSilenced is returned for an incident that cannot be silenced.
var errNotSilenced = api.Errorf(http.StatusBadRequest,
	"this cannot be silenced here: it is over, its messages name no incident, or its key belongs to another site; make a silence of the "+
		"key by the title instead")

// silenceIncident makes a silence of an incident. The client of r must be a manager.
func (h *Incidents) silenceIncident(r *http.Request, x *foundIncident, f *incidentForm) (done view.Says, err error) {
	if err := h.MayManage(r); err != nil {
		return done, err
	}
	if !x.own {
		return done, errNotSilenced
	}
	k, silences, err := h.silences.Of(r.Context(), h.NameOfIncident(r)(x.Incident))
	if err != nil {
		return done, err
	}
	if !x.IsOpen() || x.Own || k.Home(h.Site()) != x.Home {
		return done, errNotSilenced
	}
	made, err := h.silences.MakeSilence(r, silences, k, silence.Request{For: f.length, Incident: cmp.Or(x.Name, x.Derived), Who: f.by})
	if err != nil {
		return done, err
	}
	return view.Says{Text: "It is silenced until", At: made.Until, Then: "and if it is still open then, that is told"}, nil
}

// Listed returns an incident as the pages show it, with its escalation and with what silences hold
// back. Only managers see names of destinations.
func (h *Incidents) Listed(r *http.Request, x *rules.Incident, manages bool) view.ListedIncident {
	out := h.ListedIncident(r, x)
	q, err := h.App.Open(nil)
	if err != nil || q == nil {
		return out
	}
	s, err := q.Alerts.Silences.Of(r.Context(), x)
	if err != nil {
		return out // the page shows the rest
	}
	out.Silenced, out.Partly, out.SilentToEnd = s.Until, len(s.Only) > 0, s.Ends
	if manages {
		out.SilentFor = strings.Join(s.Names(), ", ")
	}
	if !escalation.Has(x) {
		return out
	}
	if k, keeps, err := q.Alerts.Silences.Keeping(r.Context(), x); err == nil {
		e := escalation.Escalation{Incident: x, Keeps: keeps, Now: q.Outbox.Queue.Now()}
		out.Line = e.Line(k, manages)
	}
	return out
}

// userOf returns the user found by Caddy's authentication, or "".
func userOf(r *http.Request) string {
	return message.PersonOf(environment.User(r))
}

// incidentPage returns the page of an incident.
func (h *Incidents) incidentPage(r *http.Request, found *foundIncident) view.IncidentPage {
	x := found.Incident
	p := view.IncidentPage{
		Root: api.RootOf(r.URL.Path), Incident: h.Listed(r, x, h.Has.Console && found.manage), Done: found.done, Problem: found.problem,
		Action: RelativeAddress(r), User: found.user,
		Acknowledge: x.IsOpen() && !x.IsAcknowledged(), Resolve: x.IsOpen() && !x.Own,
	}
	p.Console = h.Has.Console && found.manage
	switch {
	case !p.Console:
		p.Incident.KeyAddress = ""
	case x.IsOpen() && !x.Own && !p.Incident.IsSilent():
		p.Silence = SilenceAddress(r, url.Values{"key": {p.Incident.Key}, "incident": {cmp.Or(x.Name, x.Derived)}})
	}
	add := func(at time.Time, worse bool, format string, args ...any) {
		if !at.IsZero() {
			p.Events = append(p.Events, view.IncidentEvent{Time: at, Text: fmt.Sprintf(format, args...), Worse: worse})
		}
	}
	by := "It was resolved."
	if x.ResolvedBy != "" {
		by = x.ResolvedBy + " resolved it."
	}
	add(x.Resolved, false, "%s", by)
	add(x.Acknowledged.At, false, "%s acknowledged it.", alerting.Person(x.Acknowledged.By))
	add(x.Escalation.EndedAt, true, "All rounds have ended, and nobody has acknowledged it.")
	add(x.Opened, true, "It was opened.")
	if p.Console {
		events, text := h.told(r, x)
		p.Events, p.Text = append(p.Events, events...), text
	}
	slices.SortStableFunc(p.Events, func(a, b view.IncidentEvent) int { return b.Time.Compare(a.Time) })
	return p
}

// told returns which destinations were told of an incident, for managers.
func (h *Incidents) told(r *http.Request, x *rules.Incident) (events []view.IncidentEvent, text string) {
	q, err := h.App.Open(nil)
	if err != nil || q == nil {
		return nil, ""
	}
	key := h.NameOfIncident(r)(x)
	return told.Of(r.Context(), q, x, key, func(m *queue.Message) string { return h.keptText(r, key, m) })
}

// keptText returns the text of a message, if the inbox of its key has it and the client of r may
// read that inbox.
func (h *Incidents) keptText(r *http.Request, key string, m *queue.Message) (text string) {
	x, err := h.inboxes.Reader(r, h.Lookup(key))
	if err != nil {
		return ""
	}
	_ = x.CameIn(r.Context(), m.Created, m.Created, func(kept *inbox.Message) bool { // on an error, the page has no text
		if kept.ID == m.ID.String() {
			text = kept.Text()
		}
		return text == ""
	})
	return text
}
