package notifier

import "strings"

// retired maps schemes of Apprise services that have ended to what happened and
// to what to use instead.
var retired = map[string]struct{ ended, instead string }{
	"msteams": {"Microsoft has switched off the connectors of Teams (2026)", "create a workflow in Teams and use workflows://"},
	"popcorn": {"PopcornNotify has ended (2026)", "use another service"},
	"lunasea": {"the notification service of LunaSea has ended (April 2025)", "use another service, for example ntfys://"},
	"boxcar":  {"Boxcar has ended (2024)", "use another service, for example pover:// or ntfys://"},
	"faast":   {"Faast has ended (2024)", "use another service, for example pover:// or ntfys://"},
	"spontit": {"Spontit has ended (2023)", "use another service, for example pover:// or ntfys://"},
	"gitter":  {"Gitter has moved to Matrix (2023)", "use matrixs:// with the room's name there"},
	"stride":  {"Stride has ended (February 2019)", "use another service, for example slack://"},
	"palot":   {"Pushalot has ended (2019)", "use another service, for example pover:// or ntfys://"},
	"toasty":  {"Super Toasty has ended (2019)", "use another service, for example pover:// or ntfys://"},
	"nma":     {"Notify My Android has ended (2018)", "use another service, for example pover:// or ntfys://"},
}

// Retired returns the error for a URL of an Apprise service that has ended or that
// shows messages on a desktop. The error says why the service cannot be used and
// what to use instead. For any other scheme, Retired returns nil.
func Retired(scheme string) *URLError {
	scheme = strings.ToLower(scheme)
	problem := "the URL begins with " + scheme + "://, "
	if r, ok := retired[scheme]; ok {
		return &URLError{Problem: problem + "which is retired: " + r.ended, Fix: r.instead, Retired: true}
	}
	if name := desktop[scheme]; name != "" {
		return &URLError{
			Problem: problem + "which shows messages on the desktop of a computer (" + name + ") and does not work on a server",
			Fix:     "use another service", Retired: true,
		}
	}
	return nil
}

// desktop maps schemes of Apprise to the programs that show a message on the
// screen of the machine. They are not supported, because nobody looks at the
// screen of a server.
var desktop = map[string]string{
	"windows": "Windows",
	"macosx":  "macOS",
	"dbus":    "D-Bus",
	"qt":      "D-Bus",
	"kde":     "D-Bus",
	"glib":    "GLib",
	"gio":     "GLib",
	"gnome":   "GNOME",
	"blink1":  "blink(1)",
}

// errUnknownScheme returns the error for a URL whose scheme no service has.
func errUnknownScheme(scheme string) error {
	if err := Retired(scheme); err != nil {
		return err
	}
	e := &URLError{Problem: "the URL begins with " + scheme + "://, which is not a scheme of any service", Unknown: true}
	if len(registry.entries) == 0 {
		e.Fix = `the program has none; import _ "github.com/caddy-notify/caddy-notify/notifier/services"`
	}
	return e
}
