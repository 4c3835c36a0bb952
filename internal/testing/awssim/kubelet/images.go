package kubelet

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// decompressed returns user data as cloud-init and nodeadm read it, which accept gzip
// (https://docs.cloud-init.io/en/latest/explanation/format/gzip.html). Settings of Bottlerocket are TOML here.
func decompressed(family string, data []byte) ([]byte, error) {
	if family == "bottlerocket" || !bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		return data, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("the user data cannot be decompressed: %w", err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("the user data cannot be decompressed: %w", err)
	}
	return text, nil
}

// part is one part of a MIME document.
type part struct{ media, text string }

// partsOf splits a multipart MIME document like cloud-init and nodeadm.
func partsOf(text []byte) ([]part, error) {
	message, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the user data is no MIME document: %w", err)
	}
	media, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || media != "multipart/mixed" {
		return nil, fmt.Errorf("the user data is of type %q, want multipart/mixed", message.Header.Get("Content-Type"))
	}
	var parts []part
	reader := multipart.NewReader(message.Body, parameters["boundary"])
	for {
		next, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the user data ends early: %w", err)
		}
		body, err := io.ReadAll(next)
		if err != nil {
			return nil, fmt.Errorf("reading a part of the user data: %w", err)
		}
		media, _, err := mime.ParseMediaType(next.Header.Get("Content-Type"))
		if err != nil {
			return nil, fmt.Errorf("a part of the user data has the type %q: %w", next.Header.Get("Content-Type"), err)
		}
		parts = append(parts, part{media, string(body)})
	}
}

// nodeConfig is the document that nodeadm reads. https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/
type nodeConfig struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority string `json:"certificateAuthority"`
			CIDR                 string `json:"cidr"`
			EnableOutpost        bool   `json:"enableOutpost"`
			ID                   string `json:"id"`
		} `json:"cluster"`
		Containerd   map[string]any  `json:"containerd"`
		Instance     map[string]any  `json:"instance"`
		FeatureGates map[string]bool `json:"featureGates"`
		Kubelet      struct {
			Config map[string]json.RawMessage `json:"config"`
			Flags  []string                   `json:"flags"`
		} `json:"kubelet"`
	} `json:"spec"`
}

// nodeadm parses the NodeConfigs of AL2023's user data. Later ones take precedence, field by field, and flags are
// appended.
func (c *Config) nodeadm(text []byte) error {
	parts, err := partsOf(text)
	if err != nil {
		return err
	}
	cidr, settings := "", map[string]json.RawMessage{}
	for _, p := range parts {
		if p.media != "application/node.eks.aws" {
			continue
		}
		var n nodeConfig
		if err := yaml.UnmarshalStrict([]byte(p.text), &n); err != nil {
			return fmt.Errorf("nodeadm cannot read the NodeConfig: %w", err)
		}
		if n.APIVersion != "node.eks.aws/v1alpha1" || n.Kind != "NodeConfig" {
			return fmt.Errorf("nodeadm does not know %s %s", n.APIVersion, n.Kind)
		}
		said := n.Spec.Cluster
		for _, field := range []struct {
			at   *string
			said string
		}{{&c.Cluster, said.Name}, {&c.Endpoint, said.APIServerEndpoint}, {&c.Authority, said.CertificateAuthority}, {&cidr, said.CIDR}} {
			if field.said != "" {
				*field.at = field.said
			}
		}
		for name, value := range n.Spec.Kubelet.Config {
			settings[name] = value
		}
		for _, flag := range n.Spec.Kubelet.Flags {
			if err := c.flag(flag); err != nil {
				return err
			}
		}
	}
	if cidr == "" {
		return errors.New("nodeadm needs spec.cluster.cidr")
	}
	return c.settings(settings)
}

// ignoredSettings are kubelet settings that are known and have no effect in the simulation.
var ignoredSettings = []string{"clusterDNS", "evictionSoft", "evictionSoftGracePeriod", "evictionMaxPodGracePeriod",
	"imageGCHighThresholdPercent", "imageGCLowThresholdPercent",
	"cpuCFSQuota", "podsPerCore", "apiVersion", "kind", "shutdownGracePeriod", "containerLogMaxSize", "containerLogMaxFiles"}

// settings reads fields of the kubelet's configuration.
func (c *Config) settings(fields map[string]json.RawMessage) error {
	for name, value := range fields {
		var into any
		switch name {
		case "maxPods":
			into = &c.MaxPods
		case "registerWithTaints":
			into = &c.Taints
		case "kubeReserved":
			into = &c.KubeReserved
		case "systemReserved":
			into = &c.SystemReserved
		case "evictionHard":
			into = &c.EvictionHard
		default:
			if !slices.Contains(ignoredSettings, name) {
				return fmt.Errorf("field %s of the kubelet's configuration is not known", name)
			}
			continue
		}
		if err := json.Unmarshal(value, into); err != nil {
			return fmt.Errorf("field %s of the kubelet's configuration: %w", name, err)
		}
	}
	return nil
}

// bootstrap parses the call of AL2's bootstrap script, in the last script of the user data.
func (c *Config) bootstrap(text []byte) error {
	parts, err := partsOf(text)
	if err != nil {
		return err
	}
	if len(parts) == 0 || parts[len(parts)-1].media != "text/x-shellscript" {
		return errors.New("the last part of the user data is no shell script")
	}
	_, call, found := strings.Cut(parts[len(parts)-1].text, "/etc/eks/bootstrap.sh ")
	if !found {
		return errors.New("the user data does not call /etc/eks/bootstrap.sh")
	}
	call, _, _ = strings.Cut(strings.ReplaceAll(call, "\\\n", ""), "\n")
	words := wordsOf(call)
	if len(words) == 0 {
		return errors.New("/etc/eks/bootstrap.sh needs the name of the cluster")
	}
	c.Cluster = words[0]
	for i := 1; i+1 < len(words); i += 2 {
		switch value := words[i+1]; words[i] {
		case "--apiserver-endpoint":
			c.Endpoint = value
		case "--b64-cluster-ca":
			c.Authority = value
		case "--kubelet-extra-args":
			for _, flag := range wordsOf(value) {
				if err := c.flag(flag); err != nil {
					return err
				}
			}
		case "--dns-cluster-ip", "--use-max-pods", "--ip-family", "--local-disks", "--container-runtime":
		default:
			return fmt.Errorf("/etc/eks/bootstrap.sh does not know %s", words[i])
		}
	}
	return nil
}

// wordsOf splits a command like a shell, with quotes and backslashes and without expansions.
func wordsOf(text string) []string {
	var words []string
	var word []rune
	begun, escaped, quote := false, false, rune(0)
	for _, r := range text {
		switch {
		case escaped:
			word, escaped = append(word, r), false
		case r == '\\' && quote != '\'':
			begun, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			begun, quote = true, r
		case quote == 0 && (r == ' ' || r == '\t'):
			if begun {
				words = append(words, string(word))
			}
			word, begun = nil, false
		default:
			word, begun = append(word, r), true
		}
	}
	if begun {
		words = append(words, string(word))
	}
	return words
}

// bottlerocket parses Bottlerocket's settings. https://bottlerocket.dev/en/os/latest/#/api/settings/kubernetes/
func (c *Config) bottlerocket(text []byte) error {
	var document struct {
		Settings struct {
			Kubernetes struct {
				Cluster        string              `toml:"cluster-name"`
				Server         string              `toml:"api-server"`
				Authority      string              `toml:"cluster-certificate"`
				MaxPods        int64               `toml:"max-pods"`
				Labels         map[string]string   `toml:"node-labels"`
				Taints         map[string][]string `toml:"node-taints"`
				KubeReserved   map[string]string   `toml:"kube-reserved"`
				SystemReserved map[string]string   `toml:"system-reserved"`
				EvictionHard   map[string]string   `toml:"eviction-hard"`
			} `toml:"kubernetes"`
		} `toml:"settings"`
	}
	if err := toml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("the user data is not Bottlerocket's settings in TOML: %w", err)
	}
	said := document.Settings.Kubernetes
	c.Cluster, c.Endpoint, c.Authority, c.MaxPods = said.Cluster, said.Server, said.Authority, said.MaxPods
	c.KubeReserved, c.SystemReserved, c.EvictionHard = said.KubeReserved, said.SystemReserved, said.EvictionHard
	for key, value := range said.Labels {
		c.Labels[key] = value
	}
	for key, list := range said.Taints {
		for _, item := range list {
			taint, err := taintOf(key + "=" + item)
			if err != nil {
				return fmt.Errorf("settings.kubernetes.node-taints: %w", err)
			}
			c.Taints = append(c.Taints, taint)
		}
	}
	slices.SortFunc(c.Taints, func(a, b corev1.Taint) int { return strings.Compare(a.ToString(), b.ToString()) })
	return nil
}
