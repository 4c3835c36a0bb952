package userdata

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// joinedNode is the node that results from user data. The parsing is independent of the rendering.
type joinedNode struct {
	cluster, endpoint, authority string
	labels                       map[string]string
	taints                       map[string]bool // key=value:effect
	maxPods                      int64
	dns                          string
}

// refused matches labels that NodeRestriction, or this package, does not let a kubelet set.
var refused = regexp.MustCompile(`^([^/]*[.])?(kubernetes|k8s)[.]io/`)

// joins parses rendered user data as the image would, and compares the node with the request.
func joins(t *testing.T, r Request, text []byte) {
	t.Helper()
	want := joinedNode{cluster: r.Cluster.Name, endpoint: r.Cluster.Endpoint, authority: r.Cluster.CABundle, maxPods: r.Node.MaxPods,
		labels: map[string]string{"karpenter.sh/do-not-sync-taints": "true"},
		taints: map[string]bool{"karpenter.sh/unregistered=:NoExecute": true}, dns: strings.Join(r.dns(), ",")}
	for key, value := range r.Node.Labels {
		if !refused.MatchString(key) {
			want.labels[key] = value
		}
	}
	for _, taint := range append(r.Node.Taints, r.Node.StartupTaints...) {
		want.taints[taint.Key+"="+taint.Value+":"+string(taint.Effect)] = true
	}
	var got joinedNode
	switch r.Family {
	case awsv1.FamilyAL2:
		got = bootAL2(t, text)
	case awsv1.FamilyAL2023:
		got = bootAL2023(t, text)
	case awsv1.FamilyWindows2019, awsv1.FamilyWindows2022, awsv1.FamilyWindows2025:
		var cidr string
		if got, cidr = bootWindows(t, text); cidr != r.Cluster.ServiceCIDR {
			t.Errorf("the range of services is %q, want %q", cidr, r.Cluster.ServiceCIDR)
		}
	case awsv1.FamilyBottlerocket:
		got = bootBottlerocket(t, text)
		for key := range got.labels { // the user's labels are kept
			if _, ours := want.labels[key]; !ours {
				delete(got.labels, key)
			}
		}
	}
	if got.dns == "" {
		got.dns = want.dns // from the user's own TOML, or unset
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(joinedNode{})); diff != "" {
		t.Errorf("the node that joins (-planned +got):\n%s", diff)
	}
}

// bodies returns the parts of a MIME document, with their media types.
func bodies(t *testing.T, text []byte) (types, texts []string) {
	t.Helper()
	message, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("the result is not a MIME document: %v\n%s", err, text)
	}
	_, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	reader := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return types, texts
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		mediaType, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type")) // the user's parts may have any type
		types, texts = append(types, mediaType), append(texts, string(body))
	}
}

func bootAL2(t *testing.T, text []byte) joinedNode {
	t.Helper()
	types, texts := bodies(t, text)
	if last := types[len(types)-1]; last != "text/x-shellscript" {
		t.Fatalf("the last part is %s", last)
	}
	_, command, _ := strings.Cut(texts[len(texts)-1], "/etc/eks/bootstrap.sh ")
	words := shellWords(strings.ReplaceAll(command, "\\\n", ""))
	node := joinedNode{cluster: words[0]}
	for i := 1; i+1 < len(words); i++ {
		switch words[i] {
		case "--apiserver-endpoint":
			node.endpoint = words[i+1]
		case "--b64-cluster-ca":
			node.authority = words[i+1]
		case "--dns-cluster-ip":
			node.dns = words[i+1]
		case "--kubelet-extra-args":
			node.readFlags(t, shellWords(words[i+1]))
		}
	}
	return node
}

// scriptCall matches the call of the bootstrap script, and parameter one of its parameters: a name, and a string in
// which two single quotes are one.
var (
	scriptCall = regexp.MustCompile(`(?s)<powershell>.*\n& "\$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap\.ps1"((?: -\w+ '(?:[^']|'')*')+)\n</powershell>`)
	parameter  = regexp.MustCompile(`-(\w+) '((?:[^']|'')*)'`)
)

// bootWindows parses the call as PowerShell does: no expansion within single quotes.
// https://learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_quoting_rules
func bootWindows(t *testing.T, text []byte) (node joinedNode, cidr string) {
	t.Helper()
	found := scriptCall.FindSubmatch(text)
	if found == nil || strings.Count(string(text), "<powershell>") != 1 {
		t.Fatalf("the text does not call the bootstrap script in one script:\n%s", text)
	}
	for _, p := range parameter.FindAllStringSubmatch(string(found[1]), -1) {
		value := strings.ReplaceAll(p[2], "''", "'")
		switch p[1] {
		case "EKSClusterName":
			node.cluster = value
		case "APIServerEndpoint":
			node.endpoint = value
		case "Base64ClusterCA":
			node.authority = value
		case "DNSClusterIP":
			node.dns = value
		case "ServiceCIDR":
			cidr = value
		case "KubeletExtraArgs":
			node.readFlags(t, shellWords(value))
		default:
			t.Errorf("the bootstrap script has no parameter %s", p[1])
		}
	}
	return node, cidr
}

// shellWords splits a text like a shell, with single and double quotes and no expansions.
func shellWords(text string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == '\\':
			escaped, inWord = true, true
		case c == ' ' || c == '\n':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}

func (n *joinedNode) readFlags(t *testing.T, flags []string) {
	t.Helper()
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		switch name {
		case "--node-labels":
			n.labels = map[string]string{}
			for pair := range strings.SplitSeq(value, ",") {
				key, value, _ := strings.Cut(pair, "=")
				n.labels[key] = value
			}
		case "--register-with-taints":
			n.taints = map[string]bool{}
			for taint := range strings.SplitSeq(value, ",") {
				key, effect, _ := strings.Cut(taint, ":")
				if !strings.Contains(key, "=") {
					key += "="
				}
				n.taints[key+":"+effect] = true
			}
		case "--max-pods":
			if err := json.Unmarshal([]byte(value), &n.maxPods); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func bootAL2023(t *testing.T, text []byte) joinedNode {
	t.Helper()
	types, texts := bodies(t, text)
	if last := types[len(types)-1]; last != "application/node.eks.aws" {
		t.Fatalf("the last part is %s", last)
	}
	var config struct {
		Spec struct {
			Cluster struct{ Name, APIServerEndpoint, CertificateAuthority, CIDR string }
			Kubelet struct {
				Flags  []string
				Config struct {
					MaxPods            int64
					ClusterDNS         []string
					RegisterWithTaints []corev1.Taint
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(texts[len(texts)-1]), &config); err != nil {
		t.Fatal(err)
	}
	if config.Spec.Cluster.CIDR == "" {
		t.Error("nodeadm needs a CIDR")
	}
	if err := checkNodeConfig(texts[len(texts)-1]); err != nil {
		t.Errorf("checkNodeConfig rejects the rendered NodeConfig: %v", err)
	}
	node := joinedNode{cluster: config.Spec.Cluster.Name, endpoint: config.Spec.Cluster.APIServerEndpoint,
		authority: config.Spec.Cluster.CertificateAuthority,
		maxPods:   config.Spec.Kubelet.Config.MaxPods, dns: strings.Join(config.Spec.Kubelet.Config.ClusterDNS, ","), taints: map[string]bool{}}
	node.readFlags(t, config.Spec.Kubelet.Flags)
	for _, taint := range config.Spec.Kubelet.Config.RegisterWithTaints {
		node.taints[taint.Key+"="+taint.Value+":"+string(taint.Effect)] = true
	}
	return node
}

func bootBottlerocket(t *testing.T, text []byte) joinedNode {
	t.Helper()
	var typed kubernetesSettings
	if err := toml.Unmarshal(text, &typed); err != nil {
		t.Fatalf("the result is not TOML: %v\n%s", err, text)
	}
	kubernetes := typed.Settings.Kubernetes
	node := joinedNode{cluster: kubernetes.ClusterName, endpoint: kubernetes.APIServer, authority: kubernetes.ClusterCertificate,
		labels: kubernetes.NodeLabels, taints: map[string]bool{}, maxPods: *kubernetes.MaxPods}
	for key, values := range kubernetes.NodeTaints {
		for _, value := range values {
			node.taints[key+"="+value] = true
		}
	}
	return node
}
