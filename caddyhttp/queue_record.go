package caddyhttp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The queue stores these types, which the store encrypts, as their methods encode
// them (package wire). Fields may be added; an older version of the program
// ignores them.

// queuedText is the stored body of a message. It has what a delivery needs.
type queuedText struct {
	Title  string
	Body   string
	Type   notifier.Type
	Format notifier.Format
	Time   time.Time
	Hops   int
	Files  []queuedFile

	Incident notifier.Incident

	// Foreign and Dialect are those of the message.
	Foreign bool
	Dialect markup.Dialect

	Source string
	Key    string
	Site   string // the ID of the site that the message came to

	// Set for a message whose destinations a client decides.
	Untrusted bool
	Targets   int

	// Set for a message with URLs of a client.
	Client bool

	// Policy is the key of the egress policy that the message was accepted
	// under; "" for destinations of the operator, which may go anywhere.
	Policy string

	// Trace is empty unless the request was traced.
	Trace traceOrigin

	// DevicePolicy is that for the devices of the key, which are no destinations of the
	// operator; "" for none.
	DevicePolicy string
}

// The fields of a queuedText.
const (
	textTitle wire.Field = iota + 1
	textBody
	textType
	textFormat
	textTime
	textHops
	textFile // one for each
	textSource
	textKey
	textUntrusted
	textTargets
	textClient
	textPolicy
	textSite
	textIncidentName
	textIncidentID
	textIncidentState
	textForeign
	textDialect
	textIncidentEnded
	textIncidentAlerts
	textTraceParent
	textTraceState
	textDevicePolicy
)

// queuedFile is a file of a message, without its content.
type queuedFile struct {
	Name        string
	ContentType string
}

// The fields of a queuedFile.
const (
	fileName wire.Field = iota + 1
	fileContentType
)

// queuedState has what the next attempt of one delivery needs.
type queuedState struct {
	// Key, Source and Site are those of the message, and Incident is the name of what
	// it is about.
	Key      string
	Source   string
	Site     string
	Incident string
	// Reported means that events and the history report a failure as part of the
	// outcome of the message.
	Reported bool
	// Hash identifies the destination in the configuration.
	Hash string
	// URL is the URL of a client, if the destination is not in the configuration.
	URL      string
	Tags     []string
	Progress []byte // as [notifier.Progress] encodes it
}

// The fields of a queuedState.
const (
	stateKey wire.Field = iota + 1
	stateSource
	stateReported
	stateHash
	stateURL
	stateTag // one for each
	stateProgress
	stateSite
	stateIncident
)

// The fields of a result.
const (
	resultService wire.Field = iota + 1
	resultDestination
	resultTag // one for each
	resultStatus
	resultAttempts
	resultElapsed // in milliseconds
	resultError   // missing for a success
	resultOptional
	resultRule
	resultBy
	resultTry // one for each of the last attempts
)

// try is an attempt of the queue, as the pages show it.
type try struct {
	At    time.Time // when it ended
	Error string    // "" for a success
}

// The fields of a try.
const (
	tryAt wire.Field = iota + 1
	tryError
)

// The bounds of the attempts that are kept of a delivery.
const (
	maxTries    = 20
	maxTryError = 200 // bytes
)

// appendTry appends the attempts of the stored result before, and the one with the
// result r, to a stored result. A success without a failure before it needs no list.
func appendTry(result, before []byte, r notifier.Result) []byte {
	tries := decodeTries(before)
	if r.Err == nil && len(tries) == 0 {
		return result
	}
	t := try{At: time.Now()}
	if r.Err != nil {
		t.Error = markup.TruncateBytes(r.Err.Error(), maxTryError)
	}
	tries = append(tries, t)
	for _, t := range tries[max(len(tries)-maxTries, 0):] {
		item := wire.AppendTime(nil, tryAt, t.At)
		result = wire.AppendItem(result, resultTry, wire.AppendText(item, tryError, t.Error))
	}
	return result
}

// decodeTries returns the last attempts of a stored result, the oldest first.
func decodeTries(result []byte) (tries []try) {
	for r := wire.NewReader(result); r.Next(); {
		if r.Field != resultTry {
			continue
		}
		var t try
		for item := wire.NewReader(r.Bytes()); item.Next(); {
			switch item.Field {
			case tryAt:
				t.At = item.Time()
			case tryError:
				t.Error = item.Text()
			}
		}
		tries = append(tries, t)
	}
	return tries
}

// encode is the inverse of decode.
func (t *queuedText) encode() []byte {
	b := make([]byte, 0, 112+len(t.Title)+len(t.Body)+len(t.Policy)+64*len(t.Files))
	b = wire.AppendText(b, textTitle, t.Title)
	b = wire.AppendText(b, textBody, t.Body)
	b = wire.AppendText(b, textType, t.Type)
	b = wire.AppendText(b, textFormat, t.Format)
	if stamp, err := t.Time.MarshalBinary(); err == nil { // without it, the time is that of the delivery
		b = wire.AppendText(b, textTime, stamp)
	}
	b = wire.AppendNumber(b, textHops, t.Hops)
	for _, f := range t.Files {
		file := wire.AppendText(nil, fileName, f.Name)
		b = wire.AppendItem(b, textFile, wire.AppendText(file, fileContentType, f.ContentType))
	}
	b = wire.AppendText(b, textSource, t.Source)
	b = wire.AppendText(b, textKey, t.Key)
	b = wire.AppendTrue(b, textUntrusted, t.Untrusted)
	b = wire.AppendNumber(b, textTargets, t.Targets)
	b = wire.AppendTrue(b, textClient, t.Client)
	b = wire.AppendText(b, textPolicy, t.Policy)
	b = wire.AppendText(b, textDevicePolicy, t.DevicePolicy)
	b = wire.AppendText(b, textSite, t.Site)
	b = wire.AppendText(b, textIncidentName, t.Incident.Name)
	b = wire.AppendText(b, textIncidentID, t.Incident.ID)
	b = wire.AppendText(b, textIncidentState, t.Incident.State)
	b = wire.AppendTrue(b, textForeign, t.Foreign)
	b = wire.AppendText(b, textDialect, t.Dialect)
	b = wire.AppendTime(b, textIncidentEnded, t.Incident.Ended)
	b = wire.AppendText(b, textIncidentAlerts, t.Incident.Alerts)
	b = wire.AppendText(b, textTraceParent, t.Trace.Parent)
	return wire.AppendText(b, textTraceState, t.Trace.State)
}

// decode decodes the body of a message.
func (t *queuedText) decode(b []byte) error {
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case textTitle:
			t.Title = r.Text()
		case textBody:
			t.Body = r.Text()
		case textType:
			t.Type = notifier.Type(r.Text())
		case textFormat:
			t.Format = notifier.Format(r.Text())
		case textTime:
			if err := t.Time.UnmarshalBinary(r.Bytes()); err != nil {
				return err
			}
		case textHops:
			t.Hops = r.Int()
		case textFile:
			f, err := decodeFile(r.Bytes())
			if err != nil {
				return err
			}
			t.Files = append(t.Files, f)
		case textSource:
			t.Source = r.Text()
		case textKey:
			t.Key = r.Text()
		case textUntrusted:
			t.Untrusted = r.Bool()
		case textTargets:
			t.Targets = r.Int()
		case textClient:
			t.Client = r.Bool()
		case textPolicy:
			t.Policy = r.Text()
		case textDevicePolicy:
			t.DevicePolicy = r.Text()
		case textSite:
			t.Site = r.Text()
		case textIncidentName:
			t.Incident.Name = r.Text()
		case textIncidentID:
			t.Incident.ID = r.Text()
		case textIncidentState:
			t.Incident.State = notifier.IncidentState(r.Text())
		case textIncidentEnded:
			t.Incident.Ended = r.Time()
		case textIncidentAlerts:
			t.Incident.Alerts = r.Text()
		case textForeign:
			t.Foreign = r.Bool()
		case textDialect:
			t.Dialect = markup.Dialect(r.Text())
		case textTraceParent:
			t.Trace.Parent = r.Text()
		case textTraceState:
			t.Trace.State = r.Text()
		}
	}
	return r.Err()
}

func decodeFile(b []byte) (f queuedFile, err error) {
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case fileName:
			f.Name = r.Text()
		case fileContentType:
			f.ContentType = r.Text()
		}
	}
	return f, r.Err()
}

// encode is the inverse of decode.
func (s *queuedState) encode() []byte {
	b := make([]byte, 0, 64+len(s.Key)+len(s.Source)+len(s.Hash)+len(s.URL)+32*len(s.Tags)+len(s.Progress))
	b = wire.AppendText(b, stateKey, s.Key)
	b = wire.AppendText(b, stateSource, s.Source)
	b = wire.AppendTrue(b, stateReported, s.Reported)
	b = wire.AppendText(b, stateHash, s.Hash)
	b = wire.AppendText(b, stateURL, s.URL)
	for _, tag := range s.Tags {
		b = wire.AppendItem(b, stateTag, tag)
	}
	b = wire.AppendText(b, stateProgress, s.Progress)
	b = wire.AppendText(b, stateSite, s.Site)
	return wire.AppendText(b, stateIncident, s.Incident)
}

// decode decodes the state of a job.
func (s *queuedState) decode(b []byte) error {
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case stateKey:
			s.Key = r.Text()
		case stateSource:
			s.Source = r.Text()
		case stateReported:
			s.Reported = r.Bool()
		case stateHash:
			s.Hash = r.Text()
		case stateURL:
			s.URL = r.Text()
		case stateTag:
			s.Tags = append(s.Tags, r.Text())
		case stateProgress:
			s.Progress = bytes.Clone(r.Bytes())
		case stateSite:
			s.Site = r.Text()
		case stateIncident:
			s.Incident = r.Text()
		}
	}
	return r.Err()
}

// appendResult appends the stored form of a result.
func appendResult(b []byte, r *api.Result) []byte {
	b = wire.AppendText(b, resultService, r.Service)
	b = wire.AppendText(b, resultDestination, r.Destination)
	for _, tag := range r.Tags {
		b = wire.AppendItem(b, resultTag, tag)
	}
	b = wire.AppendText(b, resultStatus, r.Status)
	b = wire.AppendNumber(b, resultAttempts, r.Attempts)
	b = wire.AppendNumber(b, resultElapsed, max(r.ElapsedMS, 0))
	if r.Error != nil {
		b = wire.AppendItem(b, resultError, *r.Error)
	}
	b = wire.AppendTrue(b, resultOptional, r.Optional)
	b = wire.AppendText(b, resultRule, r.Rule)
	return wire.AppendText(b, resultBy, r.By)
}

// decodeResult is the inverse of appendResult. If b is damaged, it returns what
// comes before the damage.
func decodeResult(b []byte) api.Result {
	out := api.Result{Tags: []string{}}
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case resultService:
			out.Service = r.Text()
		case resultDestination:
			out.Destination = r.Text()
		case resultTag:
			out.Tags = append(out.Tags, r.Text())
		case resultStatus:
			out.Status = notifier.Status(r.Text())
		case resultAttempts:
			out.Attempts = r.Int()
		case resultElapsed:
			out.ElapsedMS = r.Int64()
		case resultError:
			text := r.Text()
			out.Error = &text
		case resultOptional:
			out.Optional = r.Bool()
		case resultRule:
			out.Rule = notifier.Rule(r.Text())
		case resultBy:
			out.By = r.Text()
		}
	}
	return out
}

// record returns the message of d for the queue, without jobs.
func (d *delivery) record() *queue.Message {
	m := d.message
	text := queuedText{
		Title: m.Title, Body: m.Body, Type: m.Type, Format: m.Format, Time: m.Time, Hops: m.Hops, Incident: m.Incident, Foreign: m.Foreign, Dialect: m.Dialect,
		Source: d.source, Key: d.key, Site: d.site, Client: d.to.Transient, Trace: d.trace,
	}
	for _, t := range d.to.Targets { // all devices have the same policy, and so have all others
		if isDevice(t.String()) {
			text.DevicePolicy = t.Policy().Key()
		} else {
			text.Policy = t.Policy().Key()
		}
	}
	if d.to.Limits != nil {
		text.Untrusted, text.Targets = true, len(d.to.Targets)
	}
	r := &queue.Message{ID: d.id, Created: m.Time, Summary: d.summary()}
	for _, a := range m.Attachments {
		text.Files = append(text.Files, queuedFile{a.Name, a.ContentType})
		r.Files = append(r.Files, queue.File{Size: a.Size, ReaderAt: a.ReaderAt()})
	}
	r.Body = text.encode()
	return r
}

// message returns the stored message with the files of m.
func (t *queuedText) message(m *queue.Message) (*notifier.Message, error) {
	if len(t.Files) != len(m.Files) {
		return nil, fmt.Errorf("the message has %d files, but %d are stored", len(t.Files), len(m.Files))
	}
	out := &notifier.Message{Title: t.Title, Body: t.Body, Type: t.Type, Format: t.Format, Time: t.Time, Hops: t.Hops, Incident: t.Incident, Foreign: t.Foreign, Dialect: t.Dialect}
	for i, f := range t.Files {
		out.Attachments = append(out.Attachments, notifier.NewAttachmentAt(f.Name, f.ContentType, m.Files[i].Size, m.Files[i]))
	}
	return out, nil
}

// state returns the state of a delivery to t before its first attempt.
func (d *delivery) state(t notifier.Target) queuedState {
	s := queuedState{Key: d.key, Source: d.source, Site: d.site, Incident: d.message.Incident.Name, Tags: t.Tags}
	if d.to.Transient {
		s.URL = t.URL()
	} else {
		s.Hash = t.Hash()
	}
	return s
}

// with returns the encoded state with the progress p.
func (s queuedState) with(p *notifier.Progress) []byte {
	if p != nil {
		if b, err := p.MarshalJSON(); err == nil { // without progress, everything is sent again
			s.Progress = b
		}
	}
	return s.encode()
}

// resultOf returns the stored form of a result.
func resultOf(r notifier.Result) []byte {
	result := api.NewResult(r)
	return appendResult(make([]byte, 0, roomForResult), &result)
}

// roomForResult is the number of bytes that most results need.
const roomForResult = 192

// queuedNotYet returns the result of a delivery to t whose outcome is not known
// yet.
func queuedNotYet(t notifier.Target) notifier.Result {
	return notifier.Result{Service: t.Service(), Destination: t.String(), Tags: t.Tags, Status: api.StatusQueued, Optional: t.Optional()}
}

// queuedMessage returns a stored message as clients see it.
func queuedMessage(e *queue.Entry) *api.QueuedMessage {
	m := &api.QueuedMessage{ID: e.Message.ID.String(), Created: e.Message.Created, Results: make([]api.QueuedResult, len(e.Jobs))}
	for i := range e.Jobs {
		m.Results[i] = jobResult(&e.Jobs[i])
	}
	var s queuedSummary
	if s.decode(e.Message.Summary) == nil {
		m.Incident = s.Incident
	}
	chains := readChains(e)
	chains.setOptional(e.Jobs, m.Results)
	m.SetState()
	return m
}

// jobResult returns the result of a job as clients see it.
func jobResult(j *queue.Job) (r api.QueuedResult) {
	r.Result = decodeResult(j.Result)
	switch j.Status {
	case queue.Queued, queue.Sending:
		r.Status, r.NextAttempt = api.StatusQueued, &j.Due
	case queue.Held:
		r.Status, r.Rule = api.StatusQueued, notifier.Rule(j.Rule)
		switch {
		case j.Rule == "" || j.Due.IsZero():
		case r.Rule == notifier.RuleEscalating:
			r.Next, r.Step = &j.Due, stepOfJob(j)
		default:
			r.Until = &j.Due
		}
	case queue.Superseded:
		r.Status, r.Rule, r.Error = notifier.Skipped, cmp.Or(notifier.Rule(j.Rule), notifier.RuleSuperseded), nil
		if j.By != (queue.JobID{}) {
			r.By = j.By.Message.String()
		}
	case queue.Delivered, queue.Failed:
	case queue.Cancelled:
		r.Status = api.StatusCancelled
	default:
		r.Status = notifier.Failed
		if r.Error == nil || j.Status == queue.Lost {
			r.Error = &j.Reason
		}
	}
	return r
}

// storedResults returns the results of a stored message in the form of the
// response to its request.
func storedResults(m *api.QueuedMessage) []notifier.Result {
	out := make([]notifier.Result, len(m.Results))
	for i, r := range m.Results {
		out[i] = notifier.Result{
			Service: r.Service, Destination: r.Destination, Tags: r.Tags, Status: r.Status, Optional: r.Optional, Rule: r.Rule, By: r.By,
			Attempts: r.Attempts, Elapsed: time.Duration(r.ElapsedMS) * time.Millisecond,
		}
		if r.Until != nil {
			out[i].Until = *r.Until
		} else if r.Next != nil {
			out[i].Until, out[i].Step = *r.Next, r.Step
		}
		if r.Error != nil {
			out[i].Err = errors.New(*r.Error)
		}
	}
	return out
}
