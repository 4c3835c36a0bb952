package aws

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/smithy-go"
)

// NoRegionError means that the AWS region does not respond like a region: its endpoint has no address, or it rejects
// requests that are signed for it. Regions that an account has not enabled result in the same errors
// (https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html).
type NoRegionError struct {
	Region string
	Err    error
}

func (e *NoRegionError) Error() string {
	return fmt.Sprintf("the AWS region %q does not exist, is not enabled for the account, or cannot be reached from here; set AWS_REGION to the region of the cluster: %v", e.Region, innermost(e.Err))
}

func (e *NoRegionError) Unwrap() error { return e.Err }

// regionOf returns the error of a call, converted to a NoRegionError if the region is the cause.
func regionOf(region string, err error) error {
	var unresolved *net.DNSError
	var answer smithy.APIError
	switch {
	case errors.As(err, &unresolved) && unresolved.IsNotFound:
	case errors.As(err, &answer) && strings.Contains(answer.ErrorMessage(), "scoped to a valid region"):
	default:
		return err
	}
	return &NoRegionError{Region: region, Err: err}
}
