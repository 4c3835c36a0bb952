package aws

import (
	"errors"
	"strings"
	"testing"
)

// Without credentials, startup fails with one line that says what to set. With credentials that do not work, the line
// has their source and the cause.
func TestNoCredentials(t *testing.T) {
	missing := t.TempDir() + "/token"
	for name, test := range map[string]struct {
		set  map[string]string
		want []string
	}{
		"nothing is set": {nil, []string{"EKS Pod Identity", "AWS_ACCESS_KEY_ID"}},
		"a token that is not there": {map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": missing,
			"AWS_ROLE_ARN": "arn:aws:iam::111122223333:role/karpenter"},
			[]string{"AWS_WEB_IDENTITY_TOKEN_FILE", "no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range append([]string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN"}, sources...) {
				t.Setenv(variable, "")
			}
			t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			t.Setenv("AWS_CONFIG_FILE", missing)
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", missing)
			for variable, value := range test.set {
				t.Setenv(variable, value)
			}
			cfg, err := ConfigIn(t.Context(), "test", "us-east-1")
			check(t, err)
			err = Credentials(t.Context(), cfg)
			var failed *NoCredentialsError
			if !errors.As(err, &failed) {
				t.Fatalf("%v, want a NoCredentialsError", err)
			}
			for _, want := range test.want {
				switch line := err.Error(); {
				case !strings.Contains(line, want):
					t.Errorf("line lacks %q, %q", want, line)
				case strings.Contains(line, "\n"):
					t.Errorf(`line contains "\n", %q`, line)
				case len(line) > 300:
					t.Errorf("len(line) is %v, want at most 300, %q", len(line), line)
				}
			}
		})
	}
}
