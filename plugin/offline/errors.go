package offline

import "fmt"

// InputError reports input that cannot be used: a file, an option, or a kubeconfig.
type InputError struct{ err error }

func inputErrorf(format string, arguments ...any) error {
	return &InputError{fmt.Errorf(format, arguments...)}
}

func (e *InputError) Error() string { return e.err.Error() }

// Unwrap returns the error that the message contains.
func (e *InputError) Unwrap() error { return e.err }

// ExitCode returns the exit code of a program that was given the input.
func (e *InputError) ExitCode() int { return 2 }
