package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/quotedprintable"
	"strings"

	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// al2023 returns a MIME document: the user's parts, then the NodeConfig that joins the cluster. nodeadm merges
// NodeConfigs in order, and later ones take precedence.
func (r Request) al2023() ([]byte, error) {
	parts, err := r.al2023Custom()
	if err != nil {
		return nil, err
	}
	config, err := r.nodeConfig()
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("writing a NodeConfig: %w", err)
	}
	return compose(append(parts, partOf(typeNodeConfig, string(text)))), nil
}

func (r Request) al2023Custom() ([]part, error) {
	text := plain(r.Custom)
	if text == "" {
		return nil, nil
	}
	if looksLikeMIME(text) {
		parts, err := parseMIME(text)
		if err != nil {
			return nil, err
		}
		return parts, checkNodeConfigs(parts)
	}
	if contentType, ok := marked(text); ok {
		return []part{partOf(contentType, text)}, nil
	}
	if isYAMLMap(text) || namesNodeConfig(text) {
		return []part{partOf(typeNodeConfig, text)}, checkNodeConfig(text)
	}
	return []part{partOf(typeShell, text)}, nil
}

func isYAMLMap(text string) bool {
	fields := map[string]any{}
	return yaml.Unmarshal([]byte(text), &fields) == nil && len(fields) > 0
}

// namesNodeConfig reports whether a text is intended to be a NodeConfig, even if it is invalid.
func namesNodeConfig(text string) bool {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == "apiVersion" && strings.HasPrefix(strings.Trim(value, " \t\"'"),
			nodeConfigGroup+"/") {
			return true
		}
	}
	return false
}

func checkNodeConfigs(parts []part) error {
	for _, p := range parts {
		mediaType, err := p.mediaType()
		if err != nil {
			return err
		}
		if mediaType != typeNodeConfig {
			continue
		}
		text, err := p.decoded()
		if err != nil {
			return badNodeConfig("the part application/node.eks.aws cannot be decoded", err)
		}
		if err := checkNodeConfig(text); err != nil {
			return err
		}
	}
	return nil
}

// decoded returns the body as nodeadm reads it: it may be quoted-printable, base64, or compressed.
func (p part) decoded() (string, error) {
	body := []byte(p.body)
	if strings.EqualFold(p.header.Get("Content-Transfer-Encoding"), "quoted-printable") {
		text, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(body)))
		if err != nil {
			return "", err
		}
		body = text
	}
	if data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(body)), "")); err == nil {
		body = data
	}
	if !bytes.HasPrefix(body, gzipMagic) {
		return string(body), nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(reader, 1<<20))
	return string(text), err
}

// nodeConfig returns the NodeConfig for AL2023's nodeadm.
func (r Request) nodeConfig() (*nodeConfig, error) {
	if r.Cluster.ServiceCIDR == "" {
		return nil, fmt.Errorf("user data for AL2023 needs the service CIDR of cluster %s, and it is not known", r.Cluster.Name)
	}
	authority, err := base64.StdEncoding.DecodeString(r.Cluster.CABundle)
	if err != nil || len(authority) == 0 {
		return nil, errors.Join(fmt.Errorf("user data for AL2023 needs the CA bundle of cluster %s", r.Cluster.Name), err)
	}
	kubelet, err := r.kubeletConfig()
	if err != nil {
		return nil, err
	}
	config := &nodeConfig{APIVersion: nodeConfigVersion, Kind: nodeConfigKind, Spec: nodeConfigSpec{
		Cluster: &clusterDetails{Name: r.Cluster.Name, APIServerEndpoint: r.Cluster.Endpoint, CertificateAuthority: authority,
			CIDR: r.Cluster.ServiceCIDR},
		Kubelet: &kubeletOptions{Config: kubelet, Flags: []string{"--node-labels=" + r.labelList()}},
	}}
	if r.InstanceStore == awsv1.InstanceStorePolicyRAID0 {
		config.Spec.Instance = &instanceOptions{LocalStorage: &localStorage{Strategy: "RAID0"}}
	}
	return config, nil
}

// kubeletConfig returns the class's kubelet configuration with the values for this node.
func (r Request) kubeletConfig() (map[string]json.RawMessage, error) {
	fields := map[string]any{}
	if r.Kubelet != nil {
		concrete := *r.Kubelet
		concrete.SystemReserved, concrete.KubeReserved = amounts(concrete.SystemReserved), amounts(concrete.KubeReserved)
		var err error
		if fields, err = concrete.Fields(); err != nil {
			return nil, err
		}
	}
	fields["maxPods"] = r.Node.MaxPods
	fields["registerWithTaints"] = r.taints()
	if dns := r.dns(); len(dns) > 0 {
		fields["clusterDNS"] = dns
	}
	config := map[string]json.RawMessage{}
	for name, value := range fields {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("writing %s of the kubelet configuration: %w", name, err)
		}
		config[name] = text
	}
	return config, nil
}
