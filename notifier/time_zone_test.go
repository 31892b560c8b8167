package notifier

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestTimeZoneWithoutDatabase checks that the time zones of URLs, and the zone in
// TZ, are known on a system without a time zone database, as in a container with
// nothing but the program.
func TestTimeZoneWithoutDatabase(t *testing.T) {
	const inside = "TEST_WITHOUT_TIME_ZONES" // set in the process that sees no database
	if os.Getenv(inside) == "" {
		if err := exec.CommandContext(t.Context(), "unshare", "--mount", "true").Run(); err != nil {
			t.Skip("hiding the database of the system needs the right to mount: ", err)
		}
		// Nothing is at the places where package time looks.
		const hide = `for d in /usr/share/zoneinfo /usr/share/lib/zoneinfo /usr/lib/locale/TZ /etc/zoneinfo "$(go env GOROOT)/lib/time"; do
			[ ! -d "$d" ] || mount -t tmpfs none "$d" || exit
		done
		exec "$0" -test.run="^$1\$"`
		cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", hide, os.Args[0], t.Name())
		cmd.Env = append(os.Environ(), inside+"=1", "TZ=America/New_York")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if files, err := os.ReadDir("/usr/share/zoneinfo"); len(files) > 0 {
		t.Fatal("the database is not hidden: ", err)
	}
	d, err := Parse("json://example.org?tz=calcutta", nil)
	if err != nil {
		t.Fatal(err)
	}
	summer := time.Date(2024, 7, 1, 12, 0, 0, 0, time.UTC)
	if got := summer.In(d.location).Format("-0700 MST"); got != "+0530 IST" {
		t.Errorf("in Asia/Calcutta: %s", got)
	}
	if got := summer.Local().Format("-0700 MST"); got != "-0400 EDT" {
		t.Errorf("in the zone of TZ: %s", got)
	}
}
