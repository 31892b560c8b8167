package notifier

import (
	"fmt"
	"strconv"
	"strings"
)

// Type is the kind of a message. Destinations show it as a colour, an icon or a
// priority.
type Type string

// The types of a message. The zero Type counts as [Info].
const (
	Info    Type = "info"
	Success Type = "success"
	Warning Type = "warning"
	Failure Type = "failure"
)

// ParseType parses a type, ignoring case and white space around it. An empty
// text is [Info]. The error lists the types.
func ParseType(s string) (Type, error) {
	switch t := Type(strings.ToLower(strings.TrimSpace(s))); t {
	case "":
		return Info, nil
	case Info, Success, Warning, Failure:
		return t, nil
	}
	return "", fmt.Errorf("unknown type; use info, success, warning or failure")
}

// Color returns the colour of the type, for example "#3AA337".
func (t Type) Color() string {
	switch t {
	case Success:
		return "#3AA337"
	case Warning:
		return "#CACF29"
	case Failure:
		return "#A32037"
	}
	return "#3AA3E3"
}

// ColorInt returns [Type.Color] as a number, with red in the highest of three
// bytes.
func (t Type) ColorInt() int {
	n, _ := strconv.ParseInt(t.Color()[1:], 16, 32)
	return int(n)
}

// Symbol returns three ASCII characters for destinations without colours and
// icons: [i], [+], [~] or [!].
func (t Type) Symbol() string {
	switch t {
	case Success:
		return "[+]"
	case Warning:
		return "[~]"
	case Failure:
		return "[!]"
	}
	return "[i]"
}
