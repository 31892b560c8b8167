package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/adminapi"
	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/caddyhttp/routing"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier/queue/postgres"
)

// checkServer asks the admin API of the server, and compares versions.
func (d *doctor) checkServer() {
	ofCaddy, _ := caddy.Version()
	own := fmt.Sprintf("caddy-notify %s, Caddy %s, %s", version.Current, ofCaddy, runtime.Version())
	defer func() { d.checkVersions(own) }()
	address := d.address
	if address == "" && d.config != nil {
		if d.config.Admin.Disabled {
			d.add(stateWarn, "server",
				"the configuration turns the admin API off, so that a running server cannot be asked",
				"remove admin off, or give --address if another configuration runs")
			return
		}
		address = d.config.Admin.Listen
	}
	if address == "" {
		address = caddy.DefaultAdminListen
	}
	began := time.Now()
	resp, err := caddycmd.AdminAPIRequest(address, http.MethodPost, "/notify/doctor", nil, nil)
	if err != nil {
		if isRefused(address) {
			d.stopped = true
			text := "no server answers at " + address
			if d.config != nil {
				text += ", so that only the configuration was checked"
			}
			d.add(stateWarn, "server", text, "start Caddy, or name its admin API with --address")
			return
		}
		d.add(stateFail, "server",
			"the server at "+address+" runs no gateway, or an older version: "+adminapi.Error(err).Error(),
			"load the configuration with caddy reload, or restart Caddy with this binary")
		return
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&d.running); err != nil || d.running == nil {
		d.running = nil
		d.add(stateFail, "server", "what answers at "+address+" is not the admin API of Caddy", "name the right address with --address")
		return
	}
	d.ahead = d.running.Time.Sub(began.Add(time.Since(began) / 2))
	d.add(stateOK, "server", "runs, and its admin API answers at "+address, "")
}

// isRefused reports whether nothing listens at an address of the admin API. The error of a
// request to it does not tell.
func isRefused(address string) bool {
	a, err := caddy.ParseNetworkAddress(address)
	if err != nil {
		return false
	}
	c, err := net.DialTimeout(a.Network, a.JoinHostPort(0), answerTime)
	if err != nil {
		return true
	}
	_ = c.Close()
	return false
}

// checkVersions compares the version of this command with the server's version.
func (d *doctor) checkVersions(own string) {
	if r := d.running; r != nil {
		if server := fmt.Sprintf("caddy-notify %s, Caddy %s, %s", r.Version, r.Caddy, r.Go); server != own {
			d.add(stateWarn, "versions", "the server has "+server+", and this command "+own, "restart Caddy, or run the command of the same binary")
			return
		}
	}
	d.add(stateOK, "versions", own, "")
}

// checkQueue checks whether messages can be stored: it asks the server or, if none runs, tries to
// use the folder or the database.
func (d *doctor) checkQueue() {
	configured := d.config != nil && d.config.Conf != nil && d.config.Conf.QueueSettings != nil
	switch {
	case d.running != nil && d.running.Queue != nil:
		d.checkRunningQueue()
	case d.running != nil && configured:
		d.add(stateWarn, "queue", "the configuration has one, and the server runs without", "run caddy reload")
	case configured:
		d.checkConfiguredQueue()
	case d.config != nil && d.config.Conf != nil || d.running != nil:
		d.add(stateOK, "queue", "there is none, so that a message is delivered at once or reported as failed", "")
	}
}

func (d *doctor) checkRunningQueue() {
	q := d.running.Queue
	switch {
	case q.Problem != "":
		d.add(stateFail, "queue", q.Problem,
			"make room on the disk, or see to it that PostgreSQL can be reached; GET /notify/status says when it is over")
	case q.Max > 0 && q.Bytes >= q.Max/10*9:
		d.add(stateWarn, "queue", fmt.Sprintf("it is %d %% full", q.Bytes*100/q.Max),
			"see caddy notify queue destinations for what is down, or raise max_size")
	default:
		d.add(stateOK, "queue", fmt.Sprintf("can be written; %s", deliveries(q.Waiting, "wait", "waits")), "")
	}
	if q.Dead > 0 {
		d.add(stateWarn, "queue", deliveries(q.Dead, "were given up", "was given up"),
			"caddy notify queue list --dead says why, and caddy notify queue retry --all tries again")
	}
	if n := q.Down + q.Failing; n > 0 {
		d.add(stateWarn, "queue", words.Count(n, "destination")+" failed at the last attempt", "caddy notify queue destinations says why")
	}
	if q.Ahead != nil {
		d.compare(clockOfDatabase, "PostgreSQL", time.Duration(*q.Ahead)*time.Millisecond-d.ahead)
	}
}

func deliveries(n int, several, one string) string {
	if n == 1 {
		return "1 delivery " + one
	}
	return fmt.Sprintf("%d deliveries %s", n, several)
}

func (d *doctor) checkConfiguredQueue() {
	s := d.config.Conf.QueueSettings
	switch {
	case s.Module != "":
		d.add(stateOK, "queue", "is in the store "+s.Module+", which is opened when Caddy runs", "")
		return
	case s.DSN == "":
		if err := tryFolder(s.Path); err != nil {
			d.add(stateFail, "queue", "cannot be written: "+err.Error(), "give the folder "+s.Path+" to the user that Caddy runs as, and make room")
			return
		}
		d.add(stateOK, "queue", s.Path+" can be written by this user", "")
		return
	}
	ctx, cancel := context.WithTimeout(d.cmd.Context(), answerTime)
	defer cancel()
	ahead, err := postgres.Probe(ctx, s.DSN)
	if err != nil {
		d.add(stateFail, "queue", "cannot be written: "+err.Error(), "correct queue postgres, or the database")
		return
	}
	d.compare(clockOfDatabase, "PostgreSQL", ahead)
	d.add(stateOK, "queue", "PostgreSQL answers, and the tables can be written", "")
}

// tryFolder returns an error if the queue cannot be kept in a folder. It leaves nothing
// behind. A folder that does not exist is tried in the one where it would be made.
func tryFolder(path string) error {
	file, err := os.OpenFile(filepath.Join(path, "queue.db"), os.O_RDWR, 0)
	switch {
	case err == nil:
		_ = file.Close()
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	dir := path
	for {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
		if err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, os.ErrNotExist) || parent == dir {
			return err
		}
		dir = parent
	}
	if file, err = os.CreateTemp(dir, ".doctor-*"); err != nil {
		return err
	}
	_, err = file.Write(make([]byte, 64<<10))
	return errors.Join(err, file.Sync(), file.Close(), os.Remove(file.Name()))
}

// checkAddresses finds requests to wrong addresses that are answered with success.
func (d *doctor) checkAddresses() {
	if !d.addWarnings(routing.AboutAddresses) {
		d.add(stateOK, "addresses", "no site is known to answer a mistyped address with success", "")
	}
}

// addWarnings adds the warnings that the gateway would give at its start, and reports whether there
// are any.
func (d *doctor) addWarnings(about routing.About) (found bool) {
	for _, w := range d.config.Warnings {
		if w.About == about {
			text, remedy, _ := strings.Cut(w.Text, "; ")
			d.add(stateWarn, string(about), text, remedy)
			found = true
		}
	}
	return found
}

// checkStrangers checks what clients without a password can do.
func (d *doctor) checkStrangers() {
	open := d.addWarnings(routing.AboutStrangers)
	if listen := d.config.Admin.Listen; !d.config.Admin.Disabled && isOutside(listen) {
		open = true
		d.add(stateWarn, "strangers",
			"the admin API at "+listen+" can be reached from other machines, and it has no password",
			"write admin localhost:2019 into the global options")
	}
	if !open {
		d.add(stateOK, "strangers", "no site looks open to those without a password", "")
	}
}

// isOutside reports whether other machines may reach an address of the admin API.
func isOutside(listen string) bool {
	a, err := caddy.ParseNetworkAddress(listen)
	if listen == "" || err != nil || a.IsUnixNetwork() || a.IsFdNetwork() || a.Host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(a.Host)
	return err != nil || !ip.IsLoopback()
}
