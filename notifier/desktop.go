package notifier

// desktop names, by scheme, the programs of Apprise's URLs that show messages on
// the screen of the machine. They are not supported: nobody looks at the screen of
// a server.
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
	problem := "the URL begins with " + scheme + "://, "
	if name := desktop[scheme]; name != "" {
		return &URLError{Problem: problem + "which shows messages on the desktop of a computer (" + name + ") and does not work on a server", Fix: "use another service"}
	}
	return &URLError{Problem: problem + "which is not a scheme of any service", Fix: "caddy notify services lists all"}
}
