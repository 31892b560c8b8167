package caddyhttp

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/smtp"
	"github.com/caddy-notify/caddy-notify/internal/errs"
)

// provisionMail prepares the mail server for Start, if smtp is set.
func (a *App) provisionMail(ctx caddy.Context) (err error) {
	if a.SMTP == nil {
		return nil
	}
	if a.mail, err = smtp.New(ctx, a.SMTP, &a.gateway, a.Caddyfile); err != nil {
		return err
	}
	if a.saved, err = newSavedKeys(a.settled, a.spaces, a.configsOwner(a), false, a.shared.Sender, a.gateway.Conf.Log); err != nil {
		return a.Caddyfile.Locate("configs", errs.Prefix("configs", err))
	}
	a.gateway.Conf.Global.Saved = a.saved.Finder()
	return nil
}

// startMail starts the mail server, if smtp is set.
func (a *App) startMail() error {
	if a.mail == nil {
		return nil
	}
	return a.mail.Start(a.ctx, a.shared.Process.Passwords)
}

// readSMTP reads the subdirective smtp of the global option.
func (b *settingsBlock) readSMTP(d *caddyfile.Dispenser, args []string) (err error) {
	if b.app == nil {
		return d.Err("smtp belongs into the global option notify, because all sites share it: { notify { smtp :25 } }")
	}
	b.app.SMTP, err = smtp.Read(d, args, b.to.Caddyfile)
	return err
}
