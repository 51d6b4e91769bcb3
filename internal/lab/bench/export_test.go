package bench

// AsProgram is the environment variable under which the test binary behaves as the heddle program.
const AsProgram = "HEDDLE_TEST_PROGRAM"
