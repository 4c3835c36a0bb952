package permission

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Account is a service account.
type Account struct{ Namespace, Name string }

// User returns the account's name as a user.
func (a Account) User() string { return "system:serviceaccount:" + a.Namespace + ":" + a.Name }

// Arguments returns the flags of an API server that keeps a log of the account's requests, and the path of the log.
// The policy and the log are files in the directory.
func Arguments(directory string, account Account) (flags []string, log string, err error) {
	policy := filepath.Join(directory, "audit-policy.yaml")
	log = filepath.Join(directory, "audit.log")
	text := fmt.Sprintf(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - level: Metadata
    users: [%q]
  - level: None
`, account.User())
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		return nil, "", fmt.Errorf("writing the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log}, log, nil
}

// Kubeconfig returns a kubeconfig with a token of the account, which is valid for a day.
func Kubeconfig(ctx context.Context, config *rest.Config, account Account) ([]byte, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	token, err := client.CoreV1().ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for a token of %s: %w", account.User(), err)
	}
	made := api.NewConfig()
	made.Clusters["it"] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}
	made.AuthInfos["it"] = &api.AuthInfo{Token: token.Status.Token}
	made.Contexts["it"] = &api.Context{Cluster: "it", AuthInfo: "it"}
	made.CurrentContext = "it"
	return clientcmd.Write(*made)
}

// Call is one request, with the attributes that matter for authorization.
type Call struct {
	Verb, Group, Resource string // the resource with its subresource: pods/eviction
	Namespace, Name       string
	Path                  string // of a non-resource request
	Reason                string // why it was denied
}

func (c Call) String() string {
	what := c.Path
	if c.Resource != "" {
		what = fmt.Sprintf("%s.%s %s/%s", c.Resource, cmp.Or(c.Group, "core"), c.Namespace, c.Name)
	}
	return c.Verb + " " + what
}

// Log contains the requests of an account.
type Log struct {
	Allowed, Denied []Call
}

// event holds the fields of an audit event that are read.
type event struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	ObjectRef  *struct {
		Resource, Namespace, Name, APIGroup, Subresource string
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// Read reads an audit log. It returns equal requests once.
func Read(path string) (Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return Log{}, fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close()
	log, seen := Log{}, map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		e := event{}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return Log{}, fmt.Errorf("reading the audit log: %w", err)
		}
		call, decision := e.call(), e.Annotations["authorization.k8s.io/decision"]
		if key := fmt.Sprint(call, decision); !seen[key] {
			seen[key] = true
			if decision == "allow" {
				log.Allowed = append(log.Allowed, call)
			} else {
				log.Denied = append(log.Denied, call)
			}
		}
	}
	return log, lines.Err()
}

func (e event) call() Call {
	c := Call{Verb: e.Verb, Path: e.RequestURI}
	if e.Annotations["authorization.k8s.io/decision"] != "allow" {
		c.Reason = e.Annotations["authorization.k8s.io/reason"]
	}
	if o := e.ObjectRef; o != nil && o.Resource != "" {
		c.Group, c.Resource, c.Namespace, c.Name, c.Path = o.APIGroup, o.Resource, o.Namespace, o.Name, ""
		if o.Subresource != "" {
			c.Resource += "/" + o.Subresource
		}
	}
	return c
}
