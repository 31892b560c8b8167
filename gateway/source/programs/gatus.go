package programs

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
)

func init() {
	source.Register(source.Format{
		Name:    "gatus",
		Program: "Gatus",
		Doc:     "https://gatus.io/docs/alerting-custom",
		Checked: "5.36.0",
		Has:     []string{"endpoint", "state|status", "group|conditions|errors|description|url?"},
		Payload: readGatus,
		Templates: source.Templates{
			// Gatus escapes the quotation marks of errors, because bodies are usually JSON.
			Title: `{{ with .group }}{{ . }}/{{ end }}{{ .endpoint }} {{ $state := default .status .state -}}
{{ if eq (type $state) "success" }}has recovered{{ else if eq (type $state) "failure" }}has failed{{ else }}is {{ lower (replace "_" " "
	$state) }}{{ end }}`,
			Body: `{{ with .description }}{{ . }}
{{ end }}
{{- with .errors }}{{ replace "\\\"" "\"" . }}
{{ end }}
{{- with .conditions }}{{ . | cut 2000 | replace "` + "`, ✅" + `" "\n✅" | replace "` + "`, ❌" + `" "\n❌" | replace "` + "`" + `" "" }}
{{ end }}
{{- with .url }}{{ . }}{{ end }}`,
			Type:     `{{ default .status .state }}`,
			Incident: `{{ with .group }}{{ . }}/{{ end }}{{ .endpoint }}`,
		},
	})
}

// gatusFields are the names of the lines of a text.
var gatusFields = []string{"endpoint", "group", "state", "status", "url", "description", "errors", "conditions"}

// readGatus returns the fields of a payload in JSON, or of a text with a line "name: value"
// for each. Gatus escapes nothing, so a response that it quotes can break JSON, but not
// such a text. A line without one of the names continues the value before it.
func readGatus(r *source.Request) (any, error) {
	if r.Form != nil {
		return source.FormFields(r.Form), nil
	}
	if payload.LooksLikeJSON(r.Text()) {
		data, err := payload.Decode(r.Text())
		if err != nil {
			return nil, source.Errorf(http.StatusBadRequest, "the payload of Gatus must be JSON or lines of text: %w", err)
		}
		return data, nil
	}
	out, last := map[string]any{}, ""
	for line := range bytes.Lines(r.Text()) {
		s := strings.TrimRight(string(line), "\r\n")
		name, value, ok := strings.Cut(s, ":")
		if ok && slices.Contains(gatusFields, name) && out[name] == nil {
			last = name
			out[name] = strings.TrimSpace(value)
		} else if last != "" {
			out[last] = payload.Text(out[last]) + "\n" + s
		}
	}
	return out, nil
}
