package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// builderForm is a form for the URLs of a service, with its values.
type builderForm struct {
	service     *notifier.ServiceInfo
	forms       []*notifier.URLForm
	number      int // of the form, from 1 on
	values      notifier.URLValues
	tags        string
	problems    []*notifier.URLError
	problem     string // of the whole
	tagsProblem error
	shown       bool   // secrets are readable
	recognized  string // what the text that filled in the form is; "" for none
	note        string // on that text
	unread      string // a text that was pasted and does not fill in the form
	status      string // of a test
	result      string // of a test
	line        string // for a Caddyfile
	url         string // if it cannot be added to the text of the key
	warnings    []string
}

// recognizedForm returns the form that a text has filled in.
func recognizedForm(x notifier.Recognized, tags string) *builderForm {
	f := &builderForm{service: &x.Service, forms: notifier.URLForms(x.Service.Schemes[0]), values: x.Values, tags: tags, recognized: x.What, note: x.Note}
	f.number = 1 + slices.IndexFunc(f.forms, func(o *notifier.URLForm) bool { return o.Template == x.Form.Template })
	if len(x.Values.Texts)+len(x.Values.Maps) == 0 {
		f.recognized, f.note, f.problem = "", "", "what you pasted is "+x.What
		if x.Note != "" {
			f.problem += ": " + x.Note
		}
	}
	return f
}

// form returns the chosen form.
func (f *builderForm) form() *notifier.URLForm { return f.forms[f.number-1] }

// The prefixes of the names of fields in a request, before the name of a
// parameter. A map has a key and a value for each entry.
const (
	fieldParam    = "p."
	fieldMapKey   = "k."
	fieldMapValue = "v."
)

// postedForm returns the form that was posted, or nil if there is none for the
// service in the query string.
func postedForm(r *http.Request) *builderForm {
	scheme := r.URL.Query().Get(buildQuery)
	forms := notifier.URLForms(scheme)
	number, err := strconv.Atoi(r.PostForm.Get("form"))
	if err != nil || number < 1 || number > len(forms) {
		return nil
	}
	f := &builderForm{service: notifier.FindService(scheme), forms: forms, number: number, tags: r.PostForm.Get("tags")}
	f.values = notifier.URLValues{Scheme: r.PostForm.Get("scheme"), Texts: map[string][]string{}, Maps: map[string]map[string]string{}}
	for _, field := range f.form().Fields {
		if field.Kind == notifier.KindMap {
			f.readMap(field.Name, r.PostForm[fieldMapKey+field.Name], r.PostForm[fieldMapValue+field.Name])
		} else if posted := r.PostForm[fieldParam+field.Name]; len(posted) > 0 {
			// A checkbox that is off is not posted; the hidden field before it is.
			f.readText(field, posted[len(posted)-1])
		}
	}
	return f
}

// readMap reads the value of a map. White space at the beginning and end of texts
// comes from copying, and is left out.
func (f *builderForm) readMap(name string, keys, values []string) {
	for i, key := range keys {
		if key = strings.TrimSpace(key); key == "" || i >= len(values) {
			continue
		}
		if f.values.Maps[name] == nil {
			f.values.Maps[name] = map[string]string{}
		}
		f.values.Maps[name][key] = strings.TrimSpace(values[i])
	}
}

// readText reads the value of a field that is no map.
func (f *builderForm) readText(field notifier.URLField, text string) {
	text = strings.TrimSpace(text)
	add := func(item string) { f.values.Texts[field.Name] = append(f.values.Texts[field.Name], item) }
	switch {
	case field.Path:
		for segment := range strings.SplitSeq(text, "/") {
			if segment != "" {
				add(percent.DecodeText(segment))
			}
		}
		f.values.Slash = f.form().Slash && strings.HasSuffix(text, "/")
	case field.Kind == notifier.KindList:
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				add(line)
			}
		}
	default:
		add(text)
	}
}
