package notifier

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
	return &URLError{Problem: "the URL begins with " + scheme + "://, which is not a scheme of any service", Fix: "caddy notify services lists all"}
}
