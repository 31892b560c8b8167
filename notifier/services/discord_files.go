package services

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Limits of one message.
const (
	discordMaxFields    = 10
	discordMaxFiles     = 10
	discordMaxFileBytes = 25 << 20 // of all files together
)

// discordFilesBody returns a multipart form with the payload and the files.
func discordFilesBody(payload map[string]any, files []*notifier.Attachment) *notifier.Body {
	var fields []string
	for _, name := range []string{
		"tts", "wait", "flags", "avatar_url", "username",
		"thread_name", "content", "allowed_mentions", "attachments",
	} {
		if v, ok := payload[name]; ok {
			text, isJSON := v.(json.RawMessage)
			if !isJSON {
				text, _ = json.Marshal(v) // cannot fail
			}
			fields = append(fields, `"`+name+`": `+string(text))
		}
	}
	parts := []notifier.FormPart{{Name: "payload_json", Value: "{" + strings.Join(fields, ", ") + "}"}}
	for i, f := range files {
		parts = append(parts, notifier.FormPart{Name: fmt.Sprintf("files[%d]", i), File: f})
	}
	return notifier.Multipart(parts...)
}

// fileBatches splits files into groups, one for each message.
func (d *discordHook) fileBatches(files []*notifier.Attachment) (out [][]*notifier.Attachment) {
	size := int64(0)
	for i, f := range files {
		last := len(out) - 1
		if i == 0 || !d.batch || len(out[last]) >= discordMaxFiles || size+f.Size > discordMaxFileBytes {
			out, last, size = append(out, nil), last+1, 0
		}
		out[last] = append(out[last], f)
		size += f.Size
	}
	return out
}
