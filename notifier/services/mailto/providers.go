package mailto

// providers are the known providers. A URL for one of them needs the user's
// address, but no server.
var providers = []provider{
	{"gmail.com", "smtp.gmail.com", 587, modeStartTLS, loginAddress},
	{"yandex.com yandex.ru yandex.ua yandex.by yandex.kz yandex.uz yandex.tr yandex.fr", "smtp.yandex.ru", 465, modeTLS, loginUser},
	{"hotmail.com hotmail.com.au live.com live.com.au", "smtp-mail.outlook.com", 587, modeStartTLS, loginAddress},
	{"outlook.com outlook.com.au smtp.outlook.com smtp.outlook.com.au", "smtp.outlook.com", 587, modeStartTLS, loginAddress},
	{"office365.com smtp.office365.com", "smtp.office365.com", 587, modeStartTLS, loginAny},
	{"yahoo.com yahoo.ca", "smtp.mail.yahoo.com", 465, modeTLS, loginAddress},
	{"gmx.com gmx.net gmx.de gmx.at gmx.ch gmx.fr", "mail.gmx.com", 587, modeStartTLS, loginAddress},
	{fastmailDomains, "smtp.fastmail.com", 465, modeTLS, loginAddress},
	{"zoho.com zohomail.com", "smtp.zoho.com", 587, modeStartTLS, loginAddress},
	{"sendgrid.com sendgrid.net", "smtp.sendgrid.net", 465, modeTLS, loginUser},
	{"163.com", "smtp.163.com", 465, modeTLS, loginAddress},
	{"foxmail.com qq.com", "smtp.qq.com", 587, modeStartTLS, loginAddress},
	{"comcast.net", "smtp.comcast.net", 465, modeTLS, loginAddress},
}

// fastmailDomains are the domains of Fastmail.
const fastmailDomains = `
	fastmail.com fastmail.cn fastmail.co.uk fastmail.com.au fastmail.de fastmail.es fastmail.fm fastmail.fr
	fastmail.im fastmail.in fastmail.jp fastmail.mx fastmail.net fastmail.nl fastmail.org fastmail.se fastmail.to
	fastmail.tw fastmail.uk fastmail.us 123mail.org airpost.net eml.cc fmail.co.uk fmgirl.com fmguy.com
	mailbolt.com mailcan.com mailhaven.com mailmight.com ml1.net mm.st myfastmail.com proinbox.com promessage.com
	rushpost.com sent.as sent.at sent.com speedymail.org warpmail.net xsmail.com 150mail.com 150ml.com 16mail.com
	2-mail.com 4email.net 50mail.com allmail.net bestmail.us cluemail.com elitemail.org emailcorner.net
	emailengine.net emailengine.org emailgroups.net emailplus.org emailuser.net f-m.fm fast-email.com
	fast-mail.org fastem.com fastemail.us fastemailer.com fastest.cc fastimap.com fastmailbox.net
	fastmessaging.com fea.st fmailbox.com ftml.net h-mail.us hailmail.net imap-mail.com imap.cc imapmail.org
	inoutbox.com internet-e-mail.com internet-mail.org internetemails.net internetmailing.net jetemail.net
	justemail.net letterboxes.org mail-central.com mail-page.com mailandftp.com mailas.com mailc.net
	mailforce.net mailftp.com mailingaddress.org mailite.com mailnew.com mailsent.net mailservice.ms mailup.net
	mailworks.org mymacmail.com nospammail.net ownmail.net petml.com postinbox.com postpro.net realemail.net
	reallyfast.biz reallyfast.info speedpost.net ssl-mail.com swift-mail.com the-fastest.net the-quickest.com
	theinternetemail.com veryfast.biz veryspeedy.net yepmail.net`
