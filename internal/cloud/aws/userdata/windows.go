package userdata

import (
	"regexp"
	"strings"
)

// The tags of a script in the user data of Windows. Text outside of them, such as <persist>true</persist>, has settings
// of EC2Launch (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html, "User data scripts").
const (
	scriptBegins = "<powershell>"
	scriptEnds   = "</powershell>"
)

// EC2Launch reads tags in any case. Its settings belong beside a script in tags: within one, they would be commands.
var (
	beginsScript  = regexp.MustCompile("(?i)" + scriptBegins)
	endsScript    = regexp.MustCompile("(?i)" + scriptEnds)
	launchSetting = regexp.MustCompile("(?i)<(script|persist|powershellArguments|runAsLocalSystem|detach)>")
)

// cut returns what is before and after the first match.
func cut(text string, at *regexp.Regexp) (before, after string, found bool) {
	is := at.FindStringIndex(text)
	if is == nil {
		return text, "", false
	}
	return text[:is[0]], text[is[1]:], true
}

// windows returns one PowerShell script: the user's lines, then the call of the image's own bootstrap script. The
// instance's own disks are left alone, because the script has no parameter for them.
// https://docs.aws.amazon.com/eks/latest/userguide/eks-optimized-windows-ami.html#bootstrap-script-configuration-parameters
func (r Request) windows() ([]byte, error) {
	if r.Cluster.IPv6 || strings.Contains(r.Cluster.ServiceCIDR, ":") {
		return nil, &InvalidError{Field: "spec.amiFamily", Problem: "is " + string(r.Family) + ", and the cluster has IPv6",
			Remedy: "use Windows in clusters with IPv4 only"}
	}
	own, around, err := r.windowsCustom()
	if err != nil {
		return nil, err
	}
	lines := []string{scriptBegins}
	if own != "" {
		lines = append(lines, own)
	}
	lines = append(lines, r.bootstrapCall(), scriptEnds)
	if around != "" {
		lines = append(lines, around)
	}
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}

// windowsCustom returns the lines of the user's own script, and what is around its tags. A text without tags is a
// script as a whole.
func (r Request) windowsCustom() (script, around string, err error) {
	text := strings.TrimSpace(plain(r.Custom))
	before, rest, tagged := cut(text, beginsScript)
	if setting := launchSetting.FindString(text); !tagged && setting != "" {
		return "", "", &InvalidError{Field: "spec.userData", Problem: "has " + setting + " without " + scriptBegins,
			Remedy: "put the lines of PowerShell between " + scriptBegins + " and " + scriptEnds}
	}
	if !tagged {
		return text, "", nil
	}
	script, after, closed := cut(rest, endsScript)
	if !closed || beginsScript.MatchString(after) || beginsScript.MatchString(script) {
		return "", "", &InvalidError{Field: "spec.userData",
			Problem: "has a " + scriptBegins + " without its own " + scriptEnds + ", or two scripts",
			Remedy:  "put all lines between one pair of these tags, or omit the tags"}
	}
	return strings.TrimSpace(script), strings.TrimSpace(strings.TrimSpace(before) + "\n" + strings.TrimSpace(after)), nil
}

// bootstrapCall returns the call of the image's bootstrap script. Without the range of services, it would be guessed from
// the address of the machine.
func (r Request) bootstrapCall() string {
	call := []string{`& "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"`}
	add := func(name, value string) {
		if value != "" {
			call = append(call, "-"+name+" '"+strings.ReplaceAll(value, "'", "''")+"'")
		}
	}
	add("EKSClusterName", r.Cluster.Name)
	add("APIServerEndpoint", r.Cluster.Endpoint)
	add("Base64ClusterCA", r.Cluster.CABundle)
	if dns := r.dns(); len(dns) > 0 {
		add("DNSClusterIP", dns[0])
	}
	add("ServiceCIDR", r.Cluster.ServiceCIDR)
	add("KubeletExtraArgs", strings.Join(r.kubeletFlags(), " "))
	return strings.Join(call, " ")
}
