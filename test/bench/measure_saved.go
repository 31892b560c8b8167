//go:build linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
)

// savedText returns a saved configuration with three URLs of common services.
func savedText(i int) string {
	return fmt.Sprintf("ops=discord://%018d/%068d\nmailtos://user:pass@example.com?to=a%d@example.com\njsons://host-%d.example.com/alerts/%d\n", i, i, i, i, i)
}

// savedKeys measures the start with saved keys, their first use, and the memory
// after all have been used.
func (b *bench) savedKeys() error {
	fmt.Printf("%-28s %10s %10s %12s %14s %12s %10s %10s %10s %14s %14s\n", "saved keys, three URLs each", "start ms", "CPU ms", "resident MiB",
		"first use ms", "use ms", "list ms", "save ms", "page ms", "all used, MiB", "live bytes/URL")
	storage := &certmagic.FileStorage{Path: filepath.Join(b.dir, "caddy")}
	store, err := configstore.New(configstore.Options{Storage: storage, Index: new(configstore.Index)})
	if err != nil {
		return err
	}
	for _, n := range []int{0, 10_000} {
		configs := map[string]configstore.Config{}
		for i := range n {
			configs[fmt.Sprint("key", i)] = configstore.Config{Format: configstore.FormatText, Text: savedText(i)}
		}
		if _, err := store.Import(context.Background(), configs, 2*n, true); err != nil {
			return err
		}
		m, err := b.measureSaved(n)
		if err != nil {
			return err
		}
		fmt.Printf("%-28d %10.0f %10.0f %12.1f %14.2f %12.2f %10.1f %10.1f %10.1f %14.1f %14.0f\n", n, m.start, m.cpu, m.resident,
			m.first, m.later, m.list, m.save, m.page, m.allUsed, m.perURL)
	}
	return nil
}

// savedFigures are the figures of one row: times in ms, sizes in MiB.
type savedFigures struct {
	start, cpu, resident, first, later, list, save, page, allUsed, perURL float64
}

func (b *bench) measureSaved(n int) (m savedFigures, err error) {
	c, err := b.start(b.binary, siteConfig{keys: "\t\tconfigs {\n\t\t\tmanage open\n\t\t\tmax_keys 20000\n\t\t}\n"})
	if err != nil {
		return m, err
	}
	defer c.stop()
	used, err := c.cpu()
	if err != nil {
		return m, err
	}
	m.start, m.cpu = ms(c.answered), ms(used)
	time.Sleep(3 * time.Second)
	m.resident = c.memory("VmRSS")
	before, err := c.usage(true)
	if err != nil {
		return m, err
	}
	if n > 0 {
		if err := m.use(c, n, before.settled); err != nil {
			return m, err
		}
	}
	return m, m.change(c)
}

// use uses all keys, not in the order of their names.
func (m *savedFigures) use(c *caddy, n int, before float64) error {
	var first, later []float64
	for i := range n {
		address := fmt.Sprintf("http://%s/json/urls/key%d", c.gateway, i*7919%n)
		for _, times := range []*[]float64{&first, &later} {
			begin := time.Now()
			if err := drain(address); err != nil {
				return err
			}
			*times = append(*times, ms(time.Since(begin)))
		}
	}
	m.first, m.later = median(first), median(later)
	time.Sleep(3 * time.Second)
	m.allUsed = c.memory("VmRSS")
	after, err := c.usage(true)
	if err != nil {
		return err
	}
	m.perURL = (after.settled - before) / float64(3*n)
	return nil
}

// change saves new keys and lists all keys.
func (m *savedFigures) change(c *caddy) error {
	var save, list, page []float64
	for i := range 20 {
		begin := time.Now()
		resp, err := http.PostForm("http://"+c.gateway+fmt.Sprintf("/add/new%d", i), url.Values{"config": {savedText(i)}})
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("saving a key: %s", resp.Status)
		}
		save = append(save, ms(time.Since(begin)))
		for _, l := range []struct {
			accept string
			times  *[]float64
		}{{"application/json", &list}, {"text/html", &page}} {
			r, err := http.NewRequest(http.MethodGet, "http://"+c.gateway+"/cfg", nil)
			if err != nil {
				return err
			}
			r.Header.Set("Accept", l.accept)
			begin := time.Now()
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			*l.times = append(*l.times, ms(time.Since(begin)))
		}
	}
	m.save, m.list, m.page = median(save), median(list), median(page)
	return nil
}
