package notifier

import (
	"encoding/json"
	"strings"
)

// reasonFields are the names of the fields in which services say why they refuse a message,
// the most telling first.
var reasonFields = [...]string{
	"error_description", "errorDescription", "description",
	"message", "detail", "error", "errors", "response", "reason",
}

// maxReasonDepth is how deep in an answer its reason is looked for.
const maxReasonDepth = 3

// reason returns the sentence of an answer in JSON that says why a message was not taken, such as
// Unknown Webhook in {"code": 10015, "message": "Unknown Webhook"}. It returns "" if the answer
// says no more than status, which is the text of its status code, and the answer as it is if it
// has no such sentence.
func reason(body, status string) string {
	var answer any
	if strings.HasPrefix(body, "{") && json.Unmarshal([]byte(body), &answer) == nil { // it may be cut
		if text, found := reasonIn(answer, status, maxReasonDepth); found {
			return text
		}
	}
	text, _ := reasonIn(body, status, 0)
	return text
}

// reasonIn returns the first reason in a value of an answer that says more than status, and
// whether there is any reason.
func reasonIn(v any, status string, depth int) (text string, found bool) {
	switch v := v.(type) {
	case string:
		text = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSpace(v), "."), status+": ")
		if strings.EqualFold(text, status) {
			text = ""
		}
		return text, v != ""
	case []any:
		if len(v) == 1 { // several reasons are shown as they are
			return reasonIn(v[0], status, depth)
		}
	case map[string]any:
		for _, name := range reasonFields {
			if depth == 0 || text != "" {
				break
			}
			var ok bool
			text, ok = reasonIn(v[name], status, depth-1)
			found = found || ok
		}
	}
	return text, found
}
