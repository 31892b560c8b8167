package compose

import (
	"errors"
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/gateway/source/payload"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// AddImage adds the address of an image.
func AddImage(m *source.Message, v any) {
	if s := payload.Text(v); source.IsAddress(s) && len(m.Images) < source.MaxImages {
		m.Images = append(m.Images, s)
	}
}

// RaiseType sets the type to t if t is more serious.
func RaiseType(m *source.Message, t notifier.Type) {
	if severity(t) > severity(notifier.Type(m.Type)) {
		m.Type = string(t)
	}
}

// severity returns the rank of a type for RaiseType, or 0 if it has none.
func severity(t notifier.Type) int {
	switch t {
	case notifier.Info:
		return 1
	case notifier.Success:
		return 2
	case notifier.Warning:
		return 3
	case notifier.Failure:
		return 4
	}
	return 0
}

// CheckContent returns m, or an error if m has no content. The title moves into an empty body, and
// so do the addresses of images if there is nothing else.
func CheckContent(m *source.Message, program string, r *source.Request) (*source.Message, error) {
	m.FillBody()
	if m.Body == "" {
		m.Body = strings.Join(m.Images, "\n")
	}
	if m.Body == "" && m.File == "" && len(m.Attach) == 0 && r.Files == 0 {
		return nil, source.Errorf(http.StatusBadRequest, "the message for %s %w", program, ErrNoText)
	}
	return m, nil
}

// MaxEcho is the maximum size of a value that an answer repeats, in bytes.
const MaxEcho = 64 << 10

// Echo lets the answer repeat a value of the request, unless it is missing or larger than MaxEcho:
// it stays in memory until the message is delivered.
func Echo(m *source.Message, name string, v any) {
	if v == nil || v == "" || payload.Size(v) > MaxEcho {
		return
	}
	if m.Echo == nil {
		m.Echo = map[string]any{}
	}
	m.Echo[name] = v
}

// ErrNoText is returned for a message without content.
var ErrNoText = errors.New("has no text")

// MarkEdited marks the body as edited, as chats do. The gateway cannot change a message at its
// destination, so each change is a new message.
func MarkEdited(m *source.Message) {
	if m.Body != "" {
		m.Body += "\n"
	}
	m.Body += "(edited)"
}
