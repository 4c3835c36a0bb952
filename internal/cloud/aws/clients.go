package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/upkeep"
)

// Clients are the services of AWS that the provider calls.
type Clients struct {
	EC2 *ec2.Client
	SSM *ssm.Client
	EKS *eks.Client
	IAM *iam.Client
	SQS *sqs.Client
	// Pricing is a client of the price list, which few regions have: upkeep.PricingRegion.
	Pricing *pricing.Client
}

// ClientsOf makes the clients.
func ClientsOf(cfg aws.Config) Clients {
	queues := sqs.NewFromConfig(cfg)
	cfg = cfg.Copy()
	cfg.APIOptions = append(slices.Clone(cfg.APIOptions), call.Answered)
	list := cfg.Copy()
	list.Region = upkeep.PricingRegion(cfg.Region)
	return Clients{Pricing: pricing.NewFromConfig(list), EC2: ec2.NewFromConfig(cfg), SSM: ssm.NewFromConfig(cfg), EKS: eks.NewFromConfig(cfg), IAM: iam.NewFromConfig(cfg), SQS: queues}
}

// answerTime is the longest that the transport waits for an answer; each caller has a shorter time of its own.
const answerTime = 4 * time.Minute

// Config finds credentials, region and endpoint as the SDK does by default: environment (AWS_REGION, AWS_ENDPOINT_URL
// among it), shared files, pod identity, instance metadata. The agent is what AWS's logs know the program by.
func Config(ctx context.Context, agent string) (aws.Config, error) { return ConfigIn(ctx, agent, "") }

// ConfigIn is Config for a region that is known already, unless it is empty.
func ConfigIn(ctx context.Context, agent, region string) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region),
		config.WithLogger(logging.Nop{}), // what fails is an error of its call; a warning in plain text is out of place in a log of JSON and on a screen
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(answerTime).WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = 100 })),
		config.WithAPIOptions([]func(*middleware.Stack) error{awsmiddleware.AddUserAgentKey(agent)}))
	if err != nil {
		return cfg, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if cfg.Region != "" {
		return cfg, nil
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	found, err := imds.NewFromConfig(cfg).GetRegion(limited, &imds.GetRegionInput{})
	if err != nil {
		return cfg, fmt.Errorf("finding the AWS region: set AWS_REGION, or allow access to the instance's metadata: %w", err)
	}
	cfg.Region = found.Region
	return cfg, nil
}

// NoCredentialsError means that the SDK finds no credentials. Its message is what to set; the attempts of the SDK are in Err.
type NoCredentialsError struct {
	// Configured are the environment variables by which credentials are configured that do not work, empty if there are none.
	Configured []string
	Err        error
}

func (e *NoCredentialsError) Error() string {
	if len(e.Configured) > 0 {
		return fmt.Sprintf("no AWS credentials by %s: %v", strings.Join(e.Configured, ", "), innermost(e.Err))
	}
	return "no AWS credentials: associate an IAM role with the controller's service account (EKS Pod Identity, or the annotation eks.amazonaws.com/role-arn), or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
}

func (e *NoCredentialsError) Unwrap() error { return e.Err }

// innermost is the error at the end of a chain.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// sources are the variables that name where the SDK finds credentials
// (https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html).
var sources = []string{"AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_PROFILE"}

// Credentials reports whether the SDK finds credentials, so that a program without says in one line what to set.
func Credentials(ctx context.Context, cfg aws.Config) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err := cfg.Credentials.Retrieve(ctx)
	if err == nil {
		return nil
	}
	if absent := new(NoRegionError); errors.As(regionOf(cfg.Region, err), &absent) { // credentials are asked for in the region, too
		return absent
	}
	failed := &NoCredentialsError{Err: err}
	for _, name := range sources {
		if os.Getenv(name) != "" {
			failed.Configured = append(failed.Configured, name)
		}
	}
	return failed
}

// Reachable asks EC2 whether we may ask, so that a program without network, credentials or permission says so at its
// start, in one line.
func Reachable(ctx context.Context, clients Clients) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, err := clients.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
	var answer smithy.APIError
	if errors.As(err, &answer) && answer.ErrorCode() == "DryRunOperation" {
		return nil
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("asking EC2 whether it can be reached: %w", regionOf(clients.EC2.Options().Region, err))
}
