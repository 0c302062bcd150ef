TEST(CumSumTest, ExclusiveReverseValues) {
  // Regression test for https://github.com/octo/compiler/issues/12
  OpTester test("CumSum", 18);
  test.AddAttribute("exclusive", static_cast<int64_t>(1));
  test.AddAttribute("reverse", static_cast<int64_t>(1));
  test.AddInput<float>("x", {2, 3}, {0.5f, -2.0f, 3.0f, 4.0f, 1.5f, -6.0f});
  test.AddInput<int64_t>("axis", {}, {1});
  test.AddOutput<float>("y", {2, 3}, {1.0f, 3.0f, 0.0f, -4.5f, -6.0f, 0.0f});
  test.SetOutputRelErr("y", 1e-3f);
  test.SetOutputAbsErr("y", 1e-5f);
  test.Run();
}
