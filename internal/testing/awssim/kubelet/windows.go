package kubelet

import (
	"errors"
	"fmt"
	"strings"
)

// powershell parses the call of the bootstrap script of the EKS images with Windows, in the script of the user data.
// https://docs.aws.amazon.com/eks/latest/userguide/eks-optimized-windows-ami.html
func (c *Config) powershell(text []byte) error {
	_, script, found := strings.Cut(string(text), "<powershell>")
	script, _, closed := strings.Cut(script, "</powershell>")
	if !found || !closed {
		return errors.New("the user data has no <powershell> script, which EC2Launch would run")
	}
	_, call, found := strings.Cut(script, `Start-EKSBootstrap.ps1"`)
	if !found {
		return errors.New("the user data does not call Start-EKSBootstrap.ps1")
	}
	call, _, _ = strings.Cut(call, "\n")
	for call = strings.TrimSpace(call); call != ""; call = strings.TrimSpace(call) {
		name, rest, cut := strings.Cut(call, " '")
		if !cut || !strings.HasPrefix(name, "-") {
			return fmt.Errorf("the call of Start-EKSBootstrap.ps1 has %q: want -Name 'value'", call)
		}
		var value string
		if value, call, cut = literal(rest); !cut {
			return fmt.Errorf("the value of %s has no end", name)
		}
		if err := c.bootstrapParameter(name, value); err != nil {
			return err
		}
	}
	return nil
}

// literal returns the contents of a string in single quotes, of which two stand for one, and the text behind it.
func literal(text string) (value, rest string, closed bool) {
	for {
		before, after, found := strings.Cut(text, "'")
		if value += before; !found {
			return value, "", false
		}
		if !strings.HasPrefix(after, "'") {
			return value, after, true
		}
		value, text = value+"'", after[1:]
	}
}

func (c *Config) bootstrapParameter(name, value string) error {
	switch name {
	case "-EKSClusterName":
		c.Cluster = value
	case "-APIServerEndpoint":
		c.Endpoint = value
	case "-Base64ClusterCA":
		c.Authority = value
	case "-KubeletExtraArgs":
		for _, flag := range wordsOf(value) {
			if err := c.flag(flag); err != nil {
				return err
			}
		}
	case "-DNSClusterIP", "-ServiceCIDR":
	default:
		return fmt.Errorf("Start-EKSBootstrap.ps1 has no parameter %s", name)
	}
	return nil
}
